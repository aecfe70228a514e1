"""How much the simulator has to look at for each pod: told by counts, since a clock tells more of the machine."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from rebalancer.balancing.steering.zones import ZoneSpread
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import HostPort, Placement, Pod, SpreadConstraint
from rebalancer.cluster.scheduler_inputs import Attachment, Claim, CsiNode, Volume
from rebalancer.cluster.selectors import NodeSelectorTerm, Requirement
from rebalancer.scheduling.simulator.plugin import ByNode
from rebalancer.scheduling.simulator.plugins.resources import Column, FitArgs, NodeResourcesFit
from rebalancer.scheduling.simulator.profile import Profile, profiles
from rebalancer.scheduling.simulator.simulator import Simulator
from rebalancer.scheduling.simulator.state import State
from tests import make
from tests.strategies.test_growth import work
from tests.unit.scheduling.simulator.scheduler import READ, simulator

SCHEDULER = "default-scheduler"
GOLD = (NodeSelectorTerm((Requirement("tier", "In", ("gold",)),)),)


class Read(dict[str, str]):
    """Labels of a node that count how often they are read."""

    times = 0

    def get(self, key: str, default: Any = None) -> Any:
        self.times += 1
        return super().get(key, default)


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


def test_labels_are_read_once_for_all_specs_that_ask_the_same() -> None:
    """Node selector, required and preferred affinity, and constraints that count by affinity: 50 specs are as one."""
    labels = [Read({"tier": ("gold", "silver")[number % 2], "zone": "a"}) for number in range(60)]
    nodes = [msgspec.structs.replace(make.node(f"n{number:02}"), labels=each) for number, each in enumerate(labels)]
    state = state_of(nodes)
    simulator = Simulator(state, profiles)
    spread = (SpreadConstraint(1, "zone", "DoNotSchedule", make.selector(app="web")),)

    def ask(cpu: int) -> int:
        pod = make.pod(f"p{cpu}", cpu=f"{cpu}m", node_selector={"tier": "gold"}, node_terms=GOLD, spread=spread)
        assert len(simulator.ask(pod).feasible_nodes()) == 30
        return sum(each.times for each in labels)

    first = ask(1)
    assert [ask(cpu) for cpu in range(2, 50)] == [first] * 48


def test_each_constraint_looks_at_the_others_but_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod may declare ten thousand, each with a label of its own: twice as many are twice the work."""
    looked = []
    domains = State.domains
    monkeypatch.setattr(State, "domains", lambda state, key: looked.append(key) or domains(state, key))

    def looks(number: int) -> int:
        keys = [f"zone{each}" for each in range(number)]
        simulator = Simulator(state_of([make.node("n1", labels=dict.fromkeys(keys, "a"))]), profiles)
        spread = tuple(SpreadConstraint(1, key, "DoNotSchedule", make.selector(app="web")) for key in keys)
        looked.clear()
        assert len(simulator.ask(make.pod("p", spread=spread)).feasible_nodes()) == 1
        return len(looked)

    assert looks(20) == 2 * looks(10)


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


class Looked:
    """A port or disk that counts how often one is looked at."""

    protocol, address, read_only = "TCP", "0.0.0.0", False
    times = 0

    def __init__(self, number: int) -> None:
        self._number = number

    @property
    def port(self) -> int:
        Looked.times += 1
        return self._number

    iqn = port


@pytest.mark.parametrize("kind", ["host_ports", "disks"])
def test_ports_and_disks_are_looked_at_one_by_one(kind: str) -> None:
    """A pod may have ten thousand, and so may those that run there: twice as many are twice the work."""

    def looks(number: int) -> int:
        Looked.times = 0
        numbers = (range(number), range(number, 2 * number))
        there, wanted = (Placement(**{kind: tuple(map(Looked, each))}) for each in numbers)
        running = make.pod("old", node="n1", placement=there)
        assert simulator([make.node("n1")], [running]).ask(make.pod("new", placement=wanted)).nodes
        return Looked.times

    assert looks(20) == 2 * looks(10)


def test_pods_without_ports_are_not_looked_at_for_one() -> None:
    """As nearly all of a large cluster."""

    def lines(number: int) -> int:
        plain = [make.pod(f"p{each}", cpu="1m") for each in range(number)]
        asked = simulator([make.node("n1"), make.node("n2", pods=number + 1)], plain)
        return work(lambda: asked.ask(make.pod("new", placement=Placement(host_ports=(HostPort(80),)))))

    assert lines(50) == lines(5)


def test_of_pods_nominated_for_a_node_as_many_are_placed_as_it_has_room_for() -> None:
    """Thousands may be: to go through them is a line for each, to place them and take them back is dozens."""

    def lines(number: int) -> int:
        named = [make.pod(f"p{each}", node="", cpu="1m", nominated_node="n1") for each in range(number)]
        asked = simulator([make.node("n1", pods=9)], named)
        assert asked.ask(make.pod("first")).reason == "0/1 nodes are available: 1 Too many pods."
        return work(lambda: asked.ask(make.pod("new")))

    assert lines(400) - lines(200) < 200 * 9


class Counted(tuple[Attachment, ...]):
    """Attachments that count how often they are gone through."""

    __slots__ = ()

    times = 0

    def __iter__(self) -> Iterator[Attachment]:
        Counted.times += 1
        return super().__iter__()


def test_attachments_are_gone_through_once_for_all_nodes() -> None:
    """In a large cluster there are tens of thousands, and they are the same for each pod."""
    nodes = [f"n{number}" for number in range(4)]
    read = msgspec.structs.replace(
        READ,
        claims={("default", "c"): Claim(namespace="default", name="c", volume="new", bound=True)},
        volumes={name: Volume(name=name, driver="d", handle=name) for name in ("old", "new")},
        csi_nodes={name: CsiNode(name=name, limits={"d": 1}) for name in nodes},
        attachments=Counted((Attachment(node="n2", driver="d", volume="old"),)),
    )
    asked = simulator([make.node(name) for name in nodes], read=read)

    for name in ("p", "q"):
        assert asked.ask(make.pod(name, claims=("c",))).nodes == ("n0", "n1", "n3")
    assert Counted.times == 1
