"""Whatever nodes the scheduler takes where several tie, a later replacement lands where it was foreseen."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.loads import LoadFigure, NodeLoads
from rebalancer.cluster.measured import Measured
from rebalancer.cluster.node import Node
from rebalancer.cluster.placement import ContainerCpu, Placement
from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.after_ties import AfterTies
from rebalancer.scheduling.simulation import Simulation
from tests import make
from tests.properties.scheduled_clusters import NAMESPACES, nodes
from tests.properties.test_any_order import OWNERS, wild
from tests.properties.test_simulated_scheduler import READ

MOST_WORLDS = 60  # what earlier replacements may have done, together
LEAST = {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}
PROFILES: dict[str, Any] = {
    "default": {},
    "packs by requests": {
        "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}]
    },
    "packs by usage": {
        "plugins": {"multiPoint": {"enabled": [{"name": "TargetLoadPacking"}], **LEAST}},
        "pluginConfig": [{"name": "TargetLoadPacking", "args": {"watcherAddress": "http://watcher:2020"}}],
    },
    "by number alone": {
        "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "PodCapacityOfNode"}]}}
    },
}
Build = Callable[[], Cluster]


def packing(data: st.DataObject, name: str, node: str) -> Pod:
    """A pod that nothing but room places, with a limit of cpu or without."""
    request = data.draw(st.sampled_from((100, 300, 900)))
    cpu = ContainerCpu(data.draw(st.sampled_from((None, 500))), request)
    return make.pod(
        name,
        node=node,
        namespace="blue",
        cpu=f"{request}m",
        memory=data.draw(st.sampled_from(("100Mi", "1Gi"))),
        labels={"app": data.draw(st.sampled_from("xyz"))},
        owners=data.draw(st.sampled_from(OWNERS)),
        placement=Placement(cpus=(cpu,)),
    )


def builder(places: Sequence[Node], crowd: Sequence[Pod], profile: str, percents: Sequence[int]) -> Build:
    """Return what builds the cluster, always the same."""
    figures = {node.name: (LoadFigure("CPU", "AVG", percent),) for node, percent in zip(places, percents, strict=True)}
    measured = Measured({}, {}, loads=NodeLoads(figures, make.NOW))
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [PROFILES[profile]],
    }
    snapshot = make.snapshot(
        places, crowd, namespaces=NAMESPACES, companions=READ, scheduler_configuration=configuration
    )
    return lambda: Cluster(snapshot, measure=lambda *_: measured)


def put(cluster: Cluster, landed: dict[Pod, str]) -> None:
    """Let pods go, and their replacements land on these nodes, in turn."""
    for pod, name in landed.items():
        node = cluster.node(name)
        assert node
        cluster.place(pod, node)
        cluster.evicted(pod)


def outcomes(build: Build, worlds: list[dict[Pod, str]], pod: Pod) -> tuple[set[str], list[dict[Pod, str]]]:
    """Return where the replacement may land in some world, and the worlds afterwards."""
    seen, after = set(), []
    for world in worlds:
        cluster = build()
        put(cluster, world)
        winners = cluster.index(Simulation).ask(pod).nodes
        seen |= set(winners)
        after += [{**world, pod: name} for name in winners]
    return seen, after


def wrong_answers(build: Build, crowd: Sequence[Pod], data: st.DataObject) -> Iterator[str]:
    """Let pods go one after the other, expected on one of the nodes that win, and tell which answers are wrong.

    All worlds are followed beside that: an answer names each node of each world, and no other node than the simulation
    as long as nothing tied.
    """
    cluster, worlds = build(), [{}]
    simulation, after_ties = cluster.index(Simulation), cluster.index(AfterTies)
    for pod in crowd:
        narrow, wide = simulation.ask(pod).nodes, after_ties.may_land(pod)
        if not narrow:
            return
        seen, worlds = outcomes(build, worlds, pod)
        event(f"{len(seen)} of {len(wide)} nodes")
        if not seen <= set(wide) or (len(worlds) == 1 and wide != narrow):
            yield f"{pod.name}: {wide}, where {narrow} was foreseen in turn and may be {sorted(seen)}"
        if len(worlds) > MOST_WORLDS:
            return
        put(cluster, {pod: data.draw(st.sampled_from(narrow))})


@pytest.mark.parametrize("profile", PROFILES)
@settings(max_examples=25)
@given(data=st.data())
def test_where_room_decides(profile: str, data: Any) -> None:
    """Empty nodes tie, and so do unlike ones by chance; by requests, by usage and by number."""
    number, alike, shape = data.draw(st.integers(2, 5)), data.draw(st.booleans()), data.draw(nodes(0))
    made = [shape if alike else data.draw(nodes(index)) for index in range(number)]
    places = [
        msgspec.structs.replace(node, name=f"n{index}", labels={"kubernetes.io/hostname": f"n{index}"})
        for index, node in enumerate(made)
    ]
    full = make.node("source", cpu="1")
    crowd = [packing(data, f"p{number}", "source") for number in range(data.draw(st.integers(2, 5)))]
    percents = data.draw(st.lists(st.sampled_from((1, 20, 34)), min_size=len(places), max_size=len(places)))

    assert list(wrong_answers(builder([*places, full], crowd, profile, [*percents, 90]), crowd, data)) == []


@settings(max_examples=25)
@given(st.data())
def test_with_every_rule(data: Any) -> None:
    """Affinity, spreading, ports and all."""
    places = [data.draw(nodes(index)) for index in range(data.draw(st.integers(2, 4)))]
    names = st.sampled_from([each.name for each in places])
    crowd = [wild(data, f"p{number}", data.draw(names)) for number in range(data.draw(st.integers(2, 4)))]

    assert list(wrong_answers(builder(places, crowd, "default", [20] * len(places)), crowd, data)) == []


@settings(max_examples=25)
@given(st.data())
def test_what_was_taken_back_leaves_no_trace(data: Any) -> None:
    """After a scope the answers are those from before it."""
    places = [make.node(f"n{index}") for index in range(3)]
    crowd = [packing(data, f"p{number}", "n0") for number in range(4)]
    cluster = builder(places, crowd, "default", [20] * 3)()
    after_ties = cluster.index(AfterTies)
    put(cluster, {crowd[0]: after_ties.may_land(crowd[0])[0]})
    before = [after_ties.may_land(pod) for pod in crowd[1:]]

    with cluster.scope():
        after_ties.may_land(crowd[1])
        cluster.place(crowd[1], places[1])
        cluster.remove(crowd[1])
        after_ties.may_land(crowd[2])

    assert [after_ties.may_land(pod) for pod in crowd[1:]] == before
