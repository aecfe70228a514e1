"""How much there is to look at for each pod: told by counts, since a clock tells more of the machine."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from rebalancer.balancing.steering.zones import ZoneSpread
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import HostPort, IscsiDisk, Placement, Pod, PodAffinityTerm, SpreadConstraint
from rebalancer.cluster.scheduler_inputs import Attachment, Claim, CsiNode, Volume
from rebalancer.cluster.selectors import NodeSelectorTerm, Requirement
from rebalancer.scheduling.eligibility import EligibleNodes, Obstacles
from rebalancer.scheduling.simulator.plugin import ByNode
from rebalancer.scheduling.simulator.plugins.resources import Column, FitArgs, NodeResourcesFit
from rebalancer.scheduling.simulator.profile import Profile
from rebalancer.scheduling.simulator.simulator import Simulator
from rebalancer.scheduling.simulator.state import State
from tests import make
from tests.strategies.test_growth import MOST_GROWTH, work
from tests.unit.scheduling.simulator.scheduler import READ, simulator

SCHEDULER = "default-scheduler"
APART = (PodAffinityTerm("kubernetes.io/hostname", make.selector(app="web")),)
TIERED = (NodeSelectorTerm((Requirement("tier", "Exists"),)),)


Act = Callable[[], object]


def state_of(nodes: Sequence[Node], pods: Sequence[Pod] = ()) -> State:
    return State(make.snapshot(nodes, pods, namespaces={}), READ)


def counting(state: State) -> tuple[Simulator, list[int]]:
    """A scheduler that scores by room alone, and how many nodes it scores each time."""
    scored = []

    def counted(columns: Sequence[Column]) -> ByNode:
        scored.append(np.size(columns[0].asked))
        return scorer(columns)

    fit = NodeResourcesFit(state, FitArgs())
    scorer, fit._scorer = fit._scorer, counted
    return Simulator(state, lambda _: {SCHEDULER: Profile(still=[], moving=[fit], scores=[(fit, 1)])}), scored


def test_after_a_placement_one_node_is_scored_anew() -> None:
    """Of 200 nodes, for every further pod of the same requests."""
    state = state_of([make.node(f"n{number:03}") for number in range(200)])
    simulator, scored = counting(state)
    for number in range(5):
        pod = make.pod(f"p{number}", cpu="100m")
        state.place(pod, simulator.ask(pod).nodes[0])

    assert scored == [200, 1, 1, 1, 1]


def test_to_ask_about_a_replacement_scores_no_node_anew() -> None:
    """The old pod terminates meanwhile, and takes what it took; pods of 200 nodes are asked about in turn."""
    pods = [make.pod(f"p{number}", node=f"n{number:03}") for number in range(200)]
    state = state_of([make.node(f"n{number:03}") for number in range(200)], pods)
    simulator, scored = counting(state)
    for pod in pods:
        ending = msgspec.structs.replace(pod, terminating=True)
        with simulator.exchanged(pod.node, pod, ending):
            simulator.ask(make.pod("new"))

    assert scored == [200]


def tiers(size: int) -> Act:
    """Specs that ask the same of labels, in node selector, affinity and constraints, differ in what they request."""
    nodes = [make.node(f"n{each}", labels={"tier": f"t{each}", "zone": "a"}) for each in range(size)]
    spread = (SpreadConstraint(1, "zone", "DoNotSchedule", make.selector(app="web")),)
    wish = {"node_selector": {"zone": "a"}, "node_terms": TIERED, "spread": spread}
    return asking(nodes, [make.pod(f"p{each}", cpu=f"{each}m", **wish) for each in range(size)])


def constraints(size: int) -> Act:
    keys = [f"zone{each}" for each in range(size)]
    spread = tuple(SpreadConstraint(1, key, "DoNotSchedule", make.selector(app="web")) for key in keys)
    return asking([make.node("n1", labels=dict.fromkeys(keys, "a"))], [make.pod("p", spread=spread)])


def of_both(kind: str, made: Callable[[int], object]) -> Callable[[int], Act]:
    """As many of a kind at a pod that runs as at one that comes."""

    def scene(size: int) -> Act:
        numbers = (range(size), range(size, 2 * size))
        there, wanted = (
            make.pod(f"p{each[0]}", placement=Placement(**{kind: tuple(map(made, each))})) for each in numbers
        )
        return asking([make.node("n1")], [wanted], [there])

    return scene


def plain_pods(size: int) -> Act:
    """Nearly all pods of a large cluster have no port."""
    port = Placement(host_ports=(HostPort(80),))
    pods = [make.pod(f"p{each}", cpu="1m", placement=port) for each in range(size)]
    return asking(
        [make.node("n1"), make.node("n2", pods=size + 1)], pods, [make.pod(f"r{each}") for each in range(size)]
    )


def attachments(size: int) -> Act:
    """They are the same for each node and pod."""
    nodes = [f"n{each}" for each in range(size)]
    claim = Claim(namespace="default", name="c", volume="new", bound=True)
    read = msgspec.structs.replace(
        READ,
        claims={("default", "c"): claim},
        volumes={name: Volume(name=name, driver="d", handle=name) for name in ("new", *nodes)},
        csi_nodes={name: CsiNode(name=name, limits={"d": 2}) for name in nodes},
        attachments=tuple(Attachment(node=name, driver="d", volume=name) for name in nodes),
    )
    return asking([make.node(name) for name in nodes], [make.pod("p", claims=("c",))], read=read)


def elsewhere(pods: Callable[[int], Sequence[Pod]], **size: Any) -> Callable[[int], Act]:
    """Another node is looked for, for each of so many pods, among as many nodes."""

    def scene(number: int) -> Act:
        nodes = [make.node(f"n{each}", **size) for each in range(number)]
        on = make.cluster(nodes, pods(number))
        others, obstacles = on.index(EligibleNodes).among(nodes), Obstacles(on, nodes)
        return lambda: [others.any_for(pod) or obstacles.of(pod) for pod in on.snapshot.pods]

    return scene


def replicas(number: int) -> Sequence[Pod]:
    """They keep apart, and are larger than any node."""
    template = make.pod("big", cpu="2", labels={"app": "web"}, anti_affinity=APART)
    return [msgspec.structs.replace(template, name=f"p{each}", node=f"n{each}") for each in range(number)]


def namesakes(number: int) -> Sequence[Pod]:
    """Of as many namespaces."""
    return [make.pod("web-0", namespace=f"ns{each}", node=f"n{each}", anti_affinity=APART) for each in range(number)]


SCENES: Mapping[str, Callable[[int], Act]] = {
    "specs that ask the same of labels": tiers,
    "constraints, each over a label of its own": constraints,
    "ports": of_both("host_ports", HostPort),
    "disks": of_both("disks", lambda number: IscsiDisk(str(number))),
    "pods without ports": plain_pods,
    "attached volumes": attachments,
    "replicas that are too large": elsewhere(replicas, cpu="1"),
    "pods of one name": elsewhere(namesakes),
}


def asking(nodes: Sequence[Node], pods: Sequence[Pod], there: Sequence[Pod] = (), **fields: Any) -> Act:
    asked = simulator(nodes, there, **fields)
    return lambda: [asked.ask(pod) for pod in pods]


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_twice_as_much_is_about_twice_the_work(scene: Callable[[int], Act]) -> None:
    """Whoever creates pods may ask for ten thousand of what these scenes have."""
    few, some, many = (work(scene(40 * size)) for size in (1, 2, 4))

    assert many - some <= MOST_GROWTH * (some - few)


def test_labels_that_no_node_has_take_memory_once() -> None:
    """Pods may name any number of them, and each label that is known takes some bytes for each node."""
    nodes = [make.node("n1", labels={"zone": "a"}), make.node("n2")]
    spread = tuple(SpreadConstraint(1, key, "ScheduleAnyway", make.selector(app="web")) for key in ("zone", "x", "y"))
    pod = make.pod("p", spread=spread)
    state = state_of(nodes, [pod])

    assert state.domains("x") is state.domains("y")
    assert state.domains("x").lacking.tolist() == [True, True]
    assert state.domains("zone").lacking.tolist() == [False, True]
    assert ZoneSpread(make.cluster(nodes, [pod])).by_place(["n1", "n2"]).keys() == {("a",), (None,)}


def test_of_pods_nominated_for_a_node_as_many_are_placed_as_it_has_room_for() -> None:
    """Thousands may be: to go through them is a line for each, to place them and take them back is dozens."""

    def lines(number: int) -> int:
        named = [make.pod(f"p{number}", node="", cpu="1m", nominated_node="n1") for number in range(number)]
        asked = simulator([make.node("n1", pods=9)], named)
        assert asked.ask(make.pod("first")).reason == "0/1 nodes are available: 1 Too many pods."
        return work(lambda: asked.ask(make.pod("new")))

    assert lines(400) - lines(200) < 200 * 9


def test_for_replicas_another_node_is_looked_for_once() -> None:
    """No node takes one: after the first, each costs less than to look at every node."""
    nodes = [make.node(f"n{each}", cpu="1") for each in range(60)]
    on = make.cluster(nodes, replicas(60))
    others, (first, *more) = on.index(EligibleNodes).among(nodes), on.snapshot.pods
    assert not others.any_for(first)

    assert work(lambda: [others.any_for(pod) for pod in more]) < len(more) * 2 * len(nodes)
