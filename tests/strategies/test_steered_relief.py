"""LowNodeUtilization with steering: which pods move, to where, and what is avoided meanwhile."""

import pytest
from msgspec.structs import replace

from rebalancer.engine.limits import Limits
from rebalancer.eviction.causes import Code
from rebalancer.eviction.steering import HOT, MIDDLING, Steer
from tests import make
from tests.measured import KEYS, RELIEF, Landed, cluster, low, node, pod, points

ZONE = "topology.kubernetes.io/zone"


def steered(on, strategy=None, steer=None, **arguments):
    return make.decide(on, strategy or low(40, 50), steer=steer or Steer(1.5, KEYS), **arguments)


def waves(ledger):
    assert [run.error for run in ledger.runs] == [None]
    return [each.wave for each in ledger.runs[0].waves]


def moves(ledger):
    return [(move.pod.name, move.expected) for wave in waves(ledger) for move in wave.moves]


def three_nodes(**fields):
    """n1 uses 70 of its 50, n2 45, n3 10; of n3 most is requested, so that the scheduler would take n2."""
    nodes = [node("n1"), node("n2"), node("n3", **fields)]
    pods = [pod("big"), pod("rest", prefer_no_eviction=True), pod("b", "n2"), pod("c", "n3", cpu="3")]
    return cluster(nodes, pods, {"big": 25, "rest": 45, "b": 45, "c": 10})


def test_a_pod_goes_where_it_helps_and_not_where_the_scheduler_would_put_it():
    """Unsteered, `big` would land on n2 and lift that above target, so it stays; steered, it goes to n3."""
    assert make.evicted(make.decide(three_nodes(), low(40, 50))) == []
    assert moves(steered(three_nodes())) == [("big", "n3")]


@pytest.mark.parametrize("deviation", [True, False])
def test_where_no_node_may_receive_nothing_moves(deviation):
    """As all of a new cluster, or while all are replaced: those that are about to go do not count in the mean."""
    nodes = [replace(node(name), unschedulable=True) for name in ("n1", "n2")]
    on = cluster(nodes, [pod("a"), pod("b", "n2")], {"a": 45, "b": 10})
    for each in on.nodes:
        on.hold(each)

    assert moves(steered(on, low(10, 10, useDeviationThresholds=deviation))) == []


def test_a_hot_node_carries_two_taints_and_a_middling_one_that_would_win_one():
    (wave,) = waves(steered(three_nodes()))

    assert wave.avoid == {"n1": HOT, "n2": MIDDLING}


def test_beside_a_node_that_would_win_another_that_would_not_carries_no_taint():
    nodes = [node("n1"), node("n2"), node("n3"), node("n4")]
    pods = [pod("big"), pod("rest", prefer_no_eviction=True), pod("b", "n2"), pod("c", "n3", cpu="3")]
    on = cluster(nodes, [*pods, pod("d", "n4", cpu="9")], {"big": 25, "rest": 45, "b": 45, "c": 10, "d": 45})

    assert [wave.avoid for wave in waves(steered(on))] == [{"n1": HOT, "n2": MIDDLING}]


def test_a_node_that_would_not_win_anyway_carries_no_taint():
    nodes = [node("n1"), node("n2"), node("n3")]
    pods = [pod("big"), pod("rest"), pod("b", "n2", cpu="6"), pod("c", "n3")]
    on = cluster(nodes, pods, {"big": 25, "rest": 45, "b": 20, "c": 10})

    assert [wave.avoid for wave in waves(steered(on))] == [{"n1": HOT}]


def test_a_node_with_the_soft_taint_of_another_is_no_destination():
    assert moves(steered(three_nodes(taints=["autoscaler/candidate:PreferNoSchedule"]))) == []


def test_a_node_over_its_target_receives_nothing_in_this_run_even_when_relieved():
    """Without `large` n1 has room for 25 points.  But `large` may take minutes to end.  n3 has no such room."""
    stay = {"prefer_no_eviction": True}
    pods = [pod("large"), pod("rest", **stay), pod("a", "n2"), pod("b", "n2"), pod("r", "n2", **stay), pod("c", "n3")]
    usage = {"large": points(memory=30), "rest": points(memory=25), "a": 25, "b": 25, "r": 20, "c": 30}
    three = [node("n1"), node("n2"), node("n3")]

    assert moves(steered(cluster(three, pods, usage))) == [("large", "n3")]
    assert [name for _, name in moves(steered(cluster(three, pods[1:], usage)))] == ["n1"]


def test_a_pod_that_tolerates_the_taints_stays_where_they_do_not_steer_it():
    on = cluster(
        [node("n1"), node("n2"), node("n3")],
        [pod("big", tolerations=["*"]), pod("rest"), pod("b", "n2"), pod("c", "n3", cpu="3")],
        {"big": 25, "rest": 45, "b": 45, "c": 10},
    )

    assert ("big", "n3") not in moves(steered(on))


def test_a_node_on_which_a_pod_could_not_run_is_not_named():
    """Both pods of n1 are expected on n3; n4 may receive too, and has a taint that only `gpu` tolerates."""
    nodes = [node("n1"), node("n3"), node("n4", taints=["gpu"])]
    pods = [pod("big"), pod("gpu", tolerations=["gpu"]), pod("rest", prefer_no_eviction=True)]
    on = cluster(
        nodes,
        [*pods, pod("c", "n3", cpu="2"), pod("d", "n4", cpu="3")],
        {"big": 10, "gpu": 10, "rest": 60, "c": 5, "d": 0},
    )
    (wave,) = waves(steered(on))

    assert {move.pod.name: dict(move.shares) for move in wave.moves} == {"gpu": {"n3": 1, "n4": 0}, "big": {"n3": 1}}


def test_the_destination_keeps_a_quarter_more_room_than_the_wave_takes():
    """n3 has room for 36 points within its target: 28.8 for the pods of the wave."""
    nodes = [node("n1"), node("n2")]
    sizes = {f"p{size}": size for size in (10, 11, 12, 13, 14)}
    pods = [*(pod(name) for name in sizes), pod("rest", prefer_no_eviction=True), pod("c", "n2")]
    on = cluster(nodes, pods, {**sizes, "rest": 30, "c": 14})

    for wave in waves(steered(on)):
        assert 1.25 * sum(sizes[move.pod.name] for move in wave.moves) <= 36


def test_the_figures_of_a_move_are_those_after_the_earlier_ones_of_its_wave():
    pods = [pod("a"), pod("b"), pod("rest", prefer_no_eviction=True)]
    (wave,) = waves(steered(cluster([node("n1"), node("n2")], pods, {"a": 10, "b": 10, "rest": 45})))

    told = [move.because.details for move in wave.moves]
    assert [round(each["measured"][0][when]) for each in told for when in ("before", "after")] == [65, 55, 55, 45]
    assert [round(each["lands_on"]["filled"][0][when]) for each in told for when in ("before", "after")] == [
        0,
        10,
        10,
        20,
    ]


def test_zones_are_not_spread_worse():
    """All five pods of `web` stand two in zone a and three in zone b: one more in b would make it one and four."""
    nodes = [node("n1", labels={ZONE: "a"}), node("n2", labels={ZONE: "b"}), node("n3", labels={ZONE: "b"})]
    web = {"owners": "web"}
    pods = [pod("w1", **web), pod("w2", **web), *(pod(f"w{i}", "n2", **web) for i in (3, 4)), pod("w5", "n3", **web)]
    on = cluster(nodes, [*pods, pod("other")], {"w1": 25, "w2": 25, "w3": 5, "w4": 5, "w5": 5, "other": 25})

    assert [name for name, _ in moves(steered(on))] == ["other"]


def test_many_empty_nodes_do_not_hide_those_that_have_something_to_give():
    """The 22 empty nodes are further below the band than the 24 others are above it, and 20 sources are looked at."""
    empty, full = [f"e{number:02}" for number in range(22)], [f"n{number:02}" for number in range(24)]
    pods = {f"{name}-{number}": name for name in full for number in range(4)}
    on = cluster(
        [node(name) for name in (*empty, *full)], [pod(*each) for each in pods.items()], dict.fromkeys(pods, 10)
    )

    moved = moves(steered(on, low(10, 10, useDeviationThresholds=True), limits=Limits(total=3)))

    assert len(moved) == 3
    assert {expected[0] for _, expected in moved} == {"e"}


def test_pods_of_lower_priority_go_first_among_those_that_bring_as_much():
    nodes = [node("n1"), node("n2")]
    pods = [pod("dear", priority=9, age=9000), pod("cheap", priority=1), pod("c", "n2")]
    on = cluster(nodes, pods, {"dear": 21, "cheap": 20, "c": 5}, {"n1": 28})

    assert moves(steered(on)) == [("cheap", "n2")]


def test_a_scheduler_that_nobody_knows_is_not_steered():
    strategy = low(40, 50, metricsUtilization={**RELIEF, "scheduler": "unknown"})

    assert waves(steered(three_nodes(), strategy)) == []


def crowded():
    """n1 uses 95 of its 50 in pods of 5 points."""
    pods = [pod(f"p{i:02}") for i in range(19)]
    others = [pod(f"q{i}", f"n{i}", cpu="1") for i in (2, 3, 4, 5)]
    usage = {each.name: 5 for each in pods} | {each.name: 34 for each in others}
    return cluster([node(f"n{i}") for i in range(1, 6)], [*pods, *others], usage)


def test_nodes_that_stay_over_are_named_as_without_steering():
    """n1 uses 70 of its 50, and nothing may leave it."""
    nodes = [node("n1"), node("n2")]
    on = cluster(nodes, [pod("a", owners=None), pod("b", "n2")], {"a": 70, "b": 10})

    steered_warnings = [str(notice) for notice in steered(on).warnings]
    assert steered_warnings == [str(notice) for notice in make.decide(on, low(40, 50)).warnings]
    assert len(steered_warnings) == 1
    assert "n1" in steered_warnings[0]


def test_two_waves_in_a_row_that_land_elsewhere_end_the_steering():
    steer = Landed(node="n2", replacement="new")
    ledger = steered(crowded(), steer=steer)

    assert [wave.placements[0].node for wave in ledger.runs[0].waves][-2:] == ["n2", "n2"]
    assert [notice.cause.code for notice in ledger.warnings if notice.cause.code is Code.LANDED_ELSEWHERE]
    assert steer.ended == 1


def test_the_next_wave_goes_by_where_pods_landed():
    """What lands on n2 takes its room: no later wave counts on it."""
    ledger = steered(crowded(), steer=Landed(node="n2", replacement="new"))

    first, second = [
        each.wave.moves[0].expected for each in ledger.runs[0].waves if each.wave.moves[0].expected != "n2"
    ][:2]
    assert first == second


class Closing(Steer):
    """The first node that is asked about takes no pods any more."""

    closed_node = ""

    def closed(self, wave):
        self.closed_node = self.closed_node or wave.moves[0].expected
        return frozenset({self.closed_node} & {each.expected for each in wave.moves})


def test_a_node_that_takes_no_pods_any_more_receives_none():
    """It was cordoned, say, after the cluster was read: pods go to the others, and it is avoided like all the rest."""
    steer = Closing(1.5, KEYS)
    made = waves(steered(crowded(), steer=steer))

    assert {name for wave in made for _, name in [(each.pod, each.expected) for each in wave.moves]} == {
        "n2",
        "n3",
        "n4",
        "n5",
    } - {steer.closed_node}
    assert all(steer.closed_node in wave.avoid for wave in made)


class Broken(Steer):
    """The second wave cannot begin."""

    ended = 0
    begun = 0

    def begin(self, wave):
        self.begun += 1
        if self.begun == 2:
            raise RuntimeError("no")

    def end(self):
        self.ended += 1


def test_nothing_is_left_behind_after_an_error():
    steer = Broken(1.5, KEYS)
    ledger = steered(crowded(), steer=steer)

    assert (ledger.runs[0].error, steer.ended) == ("RuntimeError: no", 1)


@pytest.mark.parametrize(("ready", "evicted"), [(1.0, 2), (None, 1)])
def test_an_owner_can_spare_the_next_pod_once_the_replacement_is_ready(ready, evicted):
    """Four pods of one owner without a PDB: one at a time."""
    pods = [*(pod(f"w{i}", owners="web") for i in range(4)), *(pod(f"c{i}", f"n{i}") for i in (2, 3, 4))]
    on = cluster(
        [node(f"n{i}") for i in range(1, 5)], pods, {f"w{i}": 22 for i in range(4)} | {f"c{i}": 5 for i in (2, 3, 4)}
    )

    assert steered(on, steer=Landed(ready_seconds=ready)).runs[0].evicted == evicted


@pytest.mark.parametrize("steer", [None, Steer(1.5, KEYS)], ids=["unsteered", "steered"])
@pytest.mark.parametrize("has", [{}, {"gpu/x": "0"}], ids=["none is offered", "zero is offered"])
def test_nodes_without_a_resource_are_not_below_their_band_in_it(has, steer):
    """Half of n3's devices are in use, which no other has; all are within 10 points of 41 % of cpu, so none moves."""
    nodes = [node("n1", extra=has), node("n2", extra=has), node("n3", extra={"gpu/x": "10"})]
    sizes = {"a": (4, "n1"), "b": (45, "n1"), "c": (33, "n2"), "d": (41, "n3")}
    usage = {name: {**points(cpu), "gpu/x": 5 * (name == "d")} for name, (cpu, _) in sizes.items()}
    on = cluster(nodes, [pod(name, on) for name, (_, on) in sizes.items()], usage)
    low_and_high = {"cpu": 10, "gpu/x": 10}, {"cpu": 10, "gpu/x": 50}
    ledger = make.decide(on, low(*low_and_high, useDeviationThresholds=True), steer=steer)

    assert make.evicted(ledger) == []
    assert ledger.runs[0].observed.counts["below"] == 1
