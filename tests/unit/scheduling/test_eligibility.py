"""Remembered answers to «does another node take it» are those that asking anew would give."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodAffinityTerm
from rebalancer.scheduling import fit
from rebalancer.scheduling.eligibility import EligibleNodes
from tests import make

APART = (PodAffinityTerm("kubernetes.io/hostname", make.selector(app="web"), ("ns0-0", "ns1-0")),)
SPECS = [
    make.pod("spec", cpu=cpu, node_selector=selector, anti_affinity=apart).spec
    for cpu in ("500m", "2", "3")
    for selector in (None, {"pool": "a"})
    for apart in ((), APART)
]
NODES = [make.node(f"n{number}", cpu="4", pods=6, labels={"pool": "ab"[number % 2]}) for number in range(4)]


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    places = draw(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(SPECS)), min_size=1, max_size=16))
    pods = [
        make.pod(
            f"p{number % 5}",  # some have the same name, which keeps no pod apart from its namesake
            namespace=f"ns{number // 5 % 2}-{number // 10}",
            node=f"n{place}",
            labels={"app": ("web", "db")[number % 2]},
            **{field: getattr(spec, field) for field in ("requests", "node_selector", "anti_affinity")},
        )
        for number, (place, spec) in enumerate(places)
    ]
    shared: dict[object, object] = {}
    return make.cluster(NODES, [_sharing(pod, shared) for pod in pods])


def _sharing(pod, shared):
    """Equal specs become one object, as decoding makes them."""
    key = (tuple(pod.spec.requests.items()), bool(pod.spec.node_selector), pod.spec.anti_affinity)
    return msgspec.structs.replace(pod, spec=shared.setdefault(key, pod.spec))


def able_anew(cluster: Cluster, pod: Pod, node: Node) -> bool:
    """Every rule asked of every resident."""
    return not (
        fit.why_placement_fails(pod.spec, node)
        or fit.why_repelled(pod, node, cluster.residents(node))
        or (node.name != pod.node and fit.why_too_full(pod.spec, cluster.free(node)))
    )


@given(clusters(), st.randoms(use_true_random=False))
def test_remembered_answers_are_true_after_every_eviction(cluster: Cluster, order) -> None:
    """Asked again and again while pods leave, in any order, and while some are expected elsewhere."""
    eligible = cluster.index(EligibleNodes)
    others = eligible.among(cluster.nodes)
    pods = list(cluster.pods())
    order.shuffle(pods)
    for leaving in pods:
        for pod in pods:
            found = others.first_for(pod)
            able = {node.name for node in cluster.nodes if able_anew(cluster, pod, node)}
            assert {node.name for node in cluster.nodes if eligible.fits(pod, node)} == able
            fitting = able - {pod.node}
            assert found in fitting or (found == "" and not fitting)
            assert others.any_for(pod) == bool(fitting)
        cluster.evicted(leaving)
        if order.random() < 0.5:
            cluster.place(leaving, order.choice(NODES))


@pytest.mark.parametrize("keeps_apart", [(), APART], ids=["too large", "and apart from each other"])
def test_a_hundred_replicas_cost_what_one_costs(keeps_apart) -> None:
    """Each node is asked once whether it has room, and nobody looks at all residents for anti-affinity."""
    nodes = [make.node(f"n{number:02d}", cpu="1", pods=10) for number in range(50)]
    spec = make.pod("big", cpu="2", anti_affinity=keeps_apart).spec
    crowd = [make.pod(f"r{number}", node=nodes[number % 50].name, labels={"app": "db"}) for number in range(400)]
    pods = [msgspec.structs.replace(make.pod(f"p{number}", node="n00"), spec=spec) for number in range(100)]
    cluster = make.cluster(nodes, [*crowd, *pods])
    asked: list[str] = []
    free, residents = cluster.free, cluster.residents
    cluster.free = lambda node: (asked.append(node.name), free(node))[1]  # type: ignore[method-assign]  # counts the work
    cluster.residents = lambda node: (asked.append("residents"), residents(node))[1]  # type: ignore[method-assign]  # too
    others = cluster.index(EligibleNodes).among(nodes)

    assert not any(others.any_for(pod) for pod in pods)
    assert asked == [node.name for node in nodes]


def test_what_a_pod_keeps_apart_from_goes_by_its_name_too() -> None:
    """Of two replicas only the one that is not called like the resident is repelled by it."""
    apart = (PodAffinityTerm("kubernetes.io/hostname", make.selector()),)
    on = make.cluster([make.node("n1"), make.node("n2")], [make.pod("p1", node="n1")])
    namesake = make.pod("p1", node="n2", anti_affinity=apart)
    others = on.index(EligibleNodes).among(on.nodes)

    assert [others.first_for(each) for each in (namesake, msgspec.structs.replace(namesake, name="p2"))] == ["n1", ""]
