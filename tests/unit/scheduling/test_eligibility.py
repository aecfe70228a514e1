"""Remembered answers to «does another node take it» are those that asking anew would give."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import PodAffinityTerm
from rebalancer.scheduling.eligibility import EligibleNodes
from tests import make

SPECS = [
    make.pod("spec", cpu=cpu, node_selector=selector).spec
    for cpu in ("500m", "2", "3")
    for selector in (None, {"pool": "a"})
]
NODES = [make.node(f"n{number}", cpu="4", pods=6, labels={"pool": "ab"[number % 2]}) for number in range(4)]


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    places = draw(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(SPECS)), min_size=1, max_size=16))
    pods = [
        make.pod(
            f"p{number}", node=f"n{place}", **{field: getattr(spec, field) for field in ("requests", "node_selector")}
        )
        for number, (place, spec) in enumerate(places)
    ]
    shared: dict[object, object] = {}
    return make.cluster(NODES, [_sharing(pod, shared) for pod in pods])


def _sharing(pod, shared):
    """Equal specs become one object, as decoding makes them."""
    key = (tuple(pod.spec.requests.items()), bool(pod.spec.node_selector))
    return msgspec.structs.replace(pod, spec=shared.setdefault(key, pod.spec))


@given(clusters(), st.randoms(use_true_random=False))
def test_remembered_answers_are_true_after_every_eviction(cluster: Cluster, order) -> None:
    """Asked again and again while pods leave, in any order."""
    eligible = cluster.index(EligibleNodes)
    others = eligible.among(cluster.nodes)
    pods = list(cluster.pods())
    order.shuffle(pods)
    for leaving in pods:
        for pod in pods:
            found = others.first_for(pod)
            fitting = {node.name for node in cluster.nodes if node.name != pod.node and eligible.fits(pod, node)}
            assert found in fitting or (found == "" and not fitting)
            assert others.any_for(pod) == bool(fitting)
        cluster.evicted(leaving)


def test_a_spec_is_not_asked_of_every_node_again_and_again() -> None:
    """A hundred replicas cost what one costs."""
    nodes = [make.node(f"n{number:02d}", cpu="1") for number in range(50)]
    spec = make.pod("big", cpu="2").spec
    pods = [msgspec.structs.replace(make.pod(f"p{number}", node="n00"), spec=spec) for number in range(100)]
    cluster = make.cluster(nodes, pods)
    asked: list[str] = []
    free = cluster.free
    cluster.free = lambda node: (asked.append(node.name), free(node))[1]  # type: ignore[method-assign]  # counts the work
    others = cluster.index(EligibleNodes).among(nodes)

    assert not any(others.any_for(pod) for pod in pods)
    assert len(asked) == len(nodes)


def test_what_a_pod_keeps_apart_from_goes_by_its_name_too() -> None:
    """Of two replicas only the one that is not called like the resident is repelled by it."""
    apart = (PodAffinityTerm("kubernetes.io/hostname", make.selector()),)
    on = make.cluster([make.node("n1"), make.node("n2")], [make.pod("p1", node="n1")])
    namesake = make.pod("p1", node="n2", anti_affinity=apart)
    others = on.index(EligibleNodes).among(on.nodes)

    assert [others.first_for(each) for each in (namesake, msgspec.structs.replace(namesake, name="p2"))] == ["n1", ""]
