"""What is foreseen of one pod holds whatever others that went have done by then, or is wider."""

from collections.abc import Callable
from itertools import islice, product
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.any_order import AnyOrder
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.configuration import read_configuration
from rebalancer.scheduling.simulator.profile import profiles
from rebalancer.scheduling.simulator.replacement import Moment
from rebalancer.scheduling.simulator.simulator import Simulator
from rebalancer.scheduling.simulator.state import State
from tests import make
from tests.models.kube_scheduler import Kube
from tests.properties.scheduled_clusters import NAMESPACES, nodes, pods
from tests.properties.test_simulated_scheduler import READ, SERVICES

OWNERS = tuple((make.owner(name, kind),) for name in ("one", "two") for kind in ("ReplicaSet", "StatefulSet", "Job"))
SERVED = [(namespace, selector) for (namespace, _), selector in SERVICES.items() if selector]
MOST = 60  # things that others may do are many


def plain(data: st.DataObject, name: str, node: str) -> Pod:
    """A pod that nothing but room places, besides a few soft wishes."""
    return make.pod(
        name,
        node=node,
        namespace="blue",
        cpu=data.draw(st.sampled_from(("100m", "300m", "900m"))),
        memory=data.draw(st.sampled_from((None, "100Mi", "3Gi"))),
        labels={"app": data.draw(st.sampled_from(("a", "x", "y", "z")))},
        tolerations=data.draw(st.sampled_from(((), ("soft-1",)))),
        owners=data.draw(st.sampled_from(OWNERS)),
    )


def wild(data: st.DataObject, name: str, node: str) -> Pod:
    """A pod with every rule."""
    made = data.draw(pods(name, node=node, owners=data.draw(st.sampled_from(OWNERS))))
    return msgspec.structs.replace(made, terminating=False)


def doings(cluster: Cluster, places: dict[Pod, tuple[str, ...]], there: list[Pod]) -> Any:
    """Yield the pods that there are, for all that others may have done."""
    simulation = cluster.index(Simulation)
    choices = []
    for pod, names in places.items():
        made = simulation.replacement(pod)
        ending = msgspec.structs.replace(pod, terminating=True)
        come = [[msgspec.structs.replace(made.pod, node=name)] for name in names]
        beside = [] if Moment.AT_ONCE not in made.moments else [[ending, *each] for each in come]
        choices.append([[], [pod], [ending], *come, *beside])
    for combined in islice(product(*choices), MOST):
        yield [*there, *(each for some in combined for each in some)]


#: Which nodes win for a pod, of these nodes with these pods.
Winners = Callable[[list[Node], list[Pod], Pod], set[str]]


def slowly(places: list[Node], present: list[Pod], pod: Pod) -> set[str]:
    """By the slow scheduler."""
    return Kube(places, present, NAMESPACES, SERVED).winners(pod)


def by_shape(document: dict[str, Any]) -> Winners:
    """By the simulator, built anew for each state, with a configuration."""

    def winners(places: list[Node], present: list[Pod], pod: Pod) -> set[str]:
        state = State(make.snapshot(places, present, namespaces=NAMESPACES), READ)
        return set(Simulator(state, profiles(state, read_configuration(document))).ask(pod).nodes)

    return winners


def unforeseen(
    cluster: Cluster, crowd: list[Pod], places: list[Node], data: st.DataObject, ask: Winners = slowly
) -> list[Any]:
    """Let others go and be expected; return where a scheduler and the answer for one more disagree."""
    any_order, simulation = cluster.index(AnyOrder), cluster.index(Simulation)
    went: dict[Pod, tuple[str, ...]] = {}
    for pod in crowd[1:]:
        answer = any_order.ask(pod)
        if answer.nodes:
            expected = cluster.node(data.draw(st.sampled_from(answer.nodes)))
            assert expected
            any_order.may_land(pod, answer.nodes)
            cluster.evicted(pod)
            cluster.place(pod, expected)
            went[pod] = answer.nodes
    for pod in (crowd[0], *went):
        answer, made = any_order.ask(pod), simulation.replacement(pod)
        if not answer.nodes:
            continue
        ending = msgspec.structs.replace(pod, terminating=True)
        owns = [[ending] if moment is Moment.AT_ONCE else [] for moment in made.moments]
        others = {each: names for each, names in went.items() if each is not pod}
        there = [each for each in crowd if each is not pod and each not in went]
        for present in (each for own in owns for each in doings(cluster, others, [*there, *own])):
            winners = ask(places, present, made.pod)
            if not winners or not winners <= set(answer.nodes):
                return [pod, winners, answer.nodes, [(each.name, each.node) for each in present]]
    return []


@settings(max_examples=30)
@given(st.data())
def test_with_room_alone(data: Any) -> None:
    """Pods that room decides on, with zones, soft taints and default spreading."""
    places = [data.draw(nodes(index)) for index in range(data.draw(st.integers(2, 4)))]
    crowd = [
        plain(data, f"p{number}", data.draw(st.sampled_from([each.name for each in places])))
        for number in range(data.draw(st.integers(2, 5)))
    ]
    cluster = make.cluster(places, crowd, namespaces=NAMESPACES, companions=READ)

    assert unforeseen(cluster, crowd, places, data) == []


@settings(max_examples=30)
@given(st.data(), st.lists(st.integers(0, 10), min_size=2, max_size=4), st.integers(1, 3))
def test_with_a_shape_that_rises_and_falls(data: Any, scores: list[int], weight: int) -> None:
    """NodeResourcesFit alone scores, by any shape, and a pod on the way changes more than both ends tell."""
    shape = [{"utilization": 100 * number // len(scores), "score": score} for number, score in enumerate(scores)]
    resources = [{"name": "cpu", "weight": weight}, {"name": "memory", "weight": 1}]
    ratio = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}, "resources": resources}
    profile = {
        "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": ratio}}],
    }
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    document = {**head, "profiles": [profile]}
    places = [make.node(f"n{number}", cpu="1", memory="4Gi") for number in range(data.draw(st.integers(2, 3)))]
    crowd = [plain(data, f"p{number}", data.draw(st.sampled_from(("n0", "n1")))) for number in range(4)]
    cluster = make.cluster(places, crowd, namespaces=NAMESPACES, companions=READ, scheduler_configuration=document)

    assert unforeseen(cluster, crowd, places, data, by_shape(document)) == []


@settings(max_examples=30)
@given(st.data())
def test_with_every_rule(data: Any) -> None:
    """Affinity, spreading, ports and all."""
    places = [data.draw(nodes(index)) for index in range(data.draw(st.integers(2, 4)))]
    crowd = [
        wild(data, f"p{number}", data.draw(st.sampled_from([each.name for each in places])))
        for number in range(data.draw(st.integers(2, 4)))
    ]
    cluster = make.cluster(places, crowd, namespaces=NAMESPACES, companions=READ)

    assert unforeseen(cluster, crowd, places, data) == []


@settings(max_examples=30)
@given(st.data())
def test_what_was_tried_and_taken_back_leaves_no_trace(data: Any) -> None:
    """After a scope the answers are those from before it; so are they after a look at some pods alone."""
    places = [data.draw(nodes(index)) for index in range(3)]
    crowd = [wild(data, f"p{number}", data.draw(st.sampled_from(("n0", "n1", "n2")))) for number in range(3)]
    cluster = make.cluster(places, crowd, namespaces=NAMESPACES, companions=READ)
    any_order = cluster.index(AnyOrder)
    before = [any_order.ask(pod) for pod in crowd]

    with cluster.scope():
        for pod in crowd[1:]:
            any_order.may_land(pod, ("n0", "n2"))
            cluster.place(pod, places[1])
            cluster.remove(pod)
        with any_order.among(crowd[:2]):
            for pod in crowd:
                any_order.ask(pod)

    assert [any_order.ask(pod) for pod in crowd] == before
