"""Relief does not move one pod again and again, and brings low nodes into the band around the mean."""

from collections import Counter

import pytest

from rebalancer.report.words import text
from tests.make import decide, evicted, owner, refused
from tests.measured import RELIEF, cluster, low, low_anywhere, node, pod, points

NODES = (node("n1"), node("n2"), node("n3"))


@pytest.mark.parametrize(
    ("ages", "goes"),
    [
        pytest.param((60, 60), "new", id="all came together"),
        pytest.param((70, 60), "new", id="within seconds of each other"),
        pytest.param((4000, 60), "old", id="one came lately, after the other"),
        pytest.param((4000, 1199), "old", id="not yet twenty minutes ago"),
        pytest.param((4000, 1200), "new", id="it came twenty minutes ago"),
        pytest.param((1199, 60), None, id="the first came alone: it may have replaced another too"),
        pytest.param((1200, 60), "old", id="but twenty minutes ago it did not"),
    ],
)
def test_a_pod_that_has_just_replaced_another_stays(ages, goes):
    """The younger of two pods is enough, but goes only if it did not come lately and after its sibling."""
    usage = {"old": 40, "new": 35}
    pods = [pod(name, age=age, owners="web") for name, age in zip(usage, ages, strict=True)]

    ledger = decide(cluster(NODES, pods, usage), low())

    assert evicted(ledger) == ([goes] if goes else [])
    assert refused(ledger) == {name: "Newcomer" for name in usage if name == "new" != goes or not goes}


@pytest.mark.parametrize(("rest", "goes"), [("90m", "old"), ("1h", "new"), ("0s", "new")])
def test_how_long_a_replacement_rests_is_for_the_policy_to_say(rest, goes):
    """The younger one cures best; it replaced another an hour ago."""
    pods = [pod("old", age=86_400, owners="web"), pod("new", age=3600, owners="web")]
    decider = low(metricsUtilization={**RELIEF, "rest": rest})

    assert evicted(decide(cluster(NODES, pods, {"old": 40, "new": 35}), decider)) == [goes]


@pytest.mark.parametrize(("together", "goes"), [(2, []), (3, ["p0"])])
def test_the_first_pods_of_an_owner_stay_if_one_cycle_may_have_moved_them(together, goes):
    """A cycle moves at most a quarter of an owner's pods: two of eight may have been moved, three were not."""
    ages = [600 if number < together else 60 for number in range(8)]
    pods = [pod(f"p{number}", age=age, owners="web") for number, age in enumerate(ages)]

    ledger = decide(cluster(NODES, pods, {each.name: 7.5 for each in pods}), low(targets=55))

    assert evicted(ledger) == goes


@pytest.mark.parametrize(("age", "goes"), [(1199, []), (1200, ["single"])])
def test_a_young_pod_without_siblings_stays(age, goes):
    """Nothing tells whether it replaced another."""
    pods = [pod("single", age=age), pod("rest", owners=[owner("agent", kind="DaemonSet")])]

    assert evicted(decide(cluster(NODES, pods, {"single": 45, "rest": 30}), low(targets=70))) == goes


def deviation(usage, strategy=low):
    """Pods of two percent each, so many on each node; the band reaches 10 points below and 30 above the mean."""
    nodes = [node(name) for name in usage]
    pods = [pod(f"{name}-{number}", on=name) for name, percent in usage.items() for number in range(percent // 2)]
    usage = {each.name: 2 for each in pods}
    return decide(cluster(nodes, pods, usage), strategy({"cpu": 10}, {"cpu": 30}, useDeviationThresholds=True))


def test_low_nodes_are_brought_into_the_band():
    """The mean is 30: n1 gives to n3 (10), which is below its edge (20), as many pods as four fifths of the nodes."""
    ledger = deviation({"n1": 40, "n2": 40, "n3": 10})

    assert Counter(entry.pod.node for entry in ledger.evictions) == {"n1": 3}
    assert "points above the mean, and others are low" in text(ledger.evictions[0].because)


def test_eight_moves_a_cycle_are_made_for_each_low_node():
    """Forecasts wear out: the next cycle knows where these landed.  The mean is about 30."""
    usage = {f"n{number:02}": 32 for number in range(26)}

    assert len(deviation({**usage, "n26": 2}).evictions) == 8
    assert len(deviation({**usage, "n26": 2, "n27": 2}, low_anywhere).evictions) == 16


def test_a_node_that_is_not_above_the_mean_any_more_donates_too():
    """One pod of 2 brings it from 32 to 30; the mean is 30.6."""
    usage = {f"n{number:02}": 32 for number in range(20)}
    reasons = [text(entry.because) for entry in deviation({**usage, "n20": 2}).evictions]

    assert reasons[0].startswith("n00 at cpu 32 % > 30.6 %: 1.4 points above the mean, and others are low; relieves ")
    assert reasons[-1].endswith(" within its band, and others are low; likely lands on n20")


def test_moves_are_no_more_than_four_fifths_of_the_nodes():
    """Two of four nodes are low: four moves would be for them."""
    assert len(deviation({"n1": 50, "n2": 46, "n3": 10, "n4": 10}).evictions) == 4
    assert len(deviation({"n1": 54, "n2": 10, "n3": 10}).evictions) == 3


def test_what_brings_most_goes_first():
    """The means are 40: n1 is further above, but what n2 can give brings n4 more at once."""
    usage = {**{f"a{number}": 3 for number in range(18)}, "b": 8, "c": 40, "x": 40, "d": 18}
    pods = [
        *(pod(f"a{number}") for number in range(18)),
        *(pod(name, on="n2", cpu="2") for name in ("b", "c")),
        pod("x", on="n3", cpu="3"),
        pod("d", on="n4"),
    ]
    nodes = [node(name) for name in ("n1", "n2", "n3", "n4")]

    gone = evicted(decide(cluster(nodes, pods, usage), low({"cpu": 10}, {"cpu": 30}, useDeviationThresholds=True)))

    assert gone[0] == "b"


@pytest.mark.parametrize(
    ("used", "low_nodes", "counted_on"),
    [
        pytest.param(30, 4, None, id="it may land on m, which is above the mean: it stays"),
        pytest.param(20, 3, "m", id="three are low: the plan counts on m, which lacks less"),
        pytest.param(20, 4, "l0", id="four are low: the plan counts on l0"),
    ],
)
def test_a_pod_brings_something_wherever_it_may_land(used, low_nodes, counted_on):
    """Nothing is requested of l0, which is low, nor of m.  The mean is 24 or so."""
    names = [f"l{number}" for number in range(low_nodes)]
    nodes = [node(name) for name in ("n1", "full", "m", *names)]
    pods = [pod(f"a{number}", cpu="300m") for number in range(10)]
    pods += [pod(f"on-{each.name}", on=each.name, cpu="2") for each in nodes if each.name not in ("n1", "m", "l0")]
    usage = {f"a{number}": 5 for number in range(10)}
    rest = {"full": 20 * low_nodes, "m": used, **dict.fromkeys(names, 5)}

    ledger = decide(cluster(nodes, pods, usage, rest), low({"cpu": 10}, {"cpu": 60}, useDeviationThresholds=True))

    destinations = [entry.destination for entry in ledger.evictions][:1]
    assert [each.nodes[0] for each in destinations] == ([counted_on] if counted_on else [])
    assert all(set(each.nodes) == {"l0", "m"} for each in destinations)


def test_no_dearer_pod_fills_a_node_before_a_cheaper_one_that_brings_anything():
    """The pod of 12 points would bring most, but has a priority; those of 1 do not."""
    usage = {**{f"a{number}": 1 for number in range(40)}, "costly": 12, "c": 40, "d": 8}
    pods = [
        *(pod(f"a{number}") for number in range(40)),
        pod("costly", priority=5),
        pod("c", on="n2", cpu="3"),
        pod("d", on="n3"),
    ]

    gone = evicted(decide(cluster(NODES, pods, usage), low({"cpu": 10}, {"cpu": 30}, useDeviationThresholds=True)))

    assert len(gone) == 3
    assert "costly" not in gone


def test_a_node_at_the_edge_in_one_resource_is_filled_with_the_other():
    """The means are 30 of cpu and 34 of memory: n3 is 9.2 above of cpu and 16 below of memory; `a` brings 5 for 0.5."""
    usage = {"a": points(0.5, 5), "b": points(24.9, 38), "c": points(25.4, 41), "d": points(39.2, 18)}
    pods = [pod("a"), pod("b", cpu="3"), pod("c", on="n2", cpu="3"), pod("d", on="n3")]
    args = {"thresholds": {"cpu": 10, "memory": 10}, "targets": {"cpu": 10, "memory": 10}}

    assert evicted(decide(cluster(NODES, pods, usage), low(**args, useDeviationThresholds=True))) == ["a"]


def test_a_node_that_is_low_in_one_resource_is_filled_too():
    """The means are 20 of cpu and 31 of memory; n3 lacks memory and has cpu: it gets what n1 can best spare."""
    usage = {"a": points(20, 25), "b": points(5, 22), "c": points(5, 40), "d": points(30, 5)}
    pods = [pod("a"), pod("b"), pod("idle", cpu="3"), pod("c", on="n2", cpu="2"), pod("d", on="n3")]
    args = {"thresholds": {"cpu": 40, "memory": 20}, "targets": {"cpu": 60, "memory": 30}}

    assert evicted(decide(cluster(NODES, pods, usage), low(**args, useDeviationThresholds=True))) == ["b"]


@pytest.mark.parametrize(("with_nothing_to_donate", "goes"), [(19, True), (20, False)])
def test_the_search_ends_after_twenty_nodes_in_a_row_that_have_nothing_to_donate(with_nothing_to_donate, goes):
    """A large cluster has thousands; those that are fuller are asked first, and only the last has a pod that may go."""
    full = [f"f{number:02}" for number in range(with_nothing_to_donate)]
    nodes = [node(name) for name in (*full, "giver", "low")]
    pods = [pod(f"{name}-stays", on=name, owners=None) for name in full]
    pods += [pod(f"small{number}", on="giver") for number in range(10)]
    usage = {**{f"{name}-stays": 50 for name in full}, **{f"small{number}": 4.8 for number in range(10)}}

    ledger = decide(cluster(nodes, pods, usage), low({"cpu": 10}, {"cpu": 60}, useDeviationThresholds=True))

    assert bool(ledger.evictions) is goes


@pytest.mark.parametrize(("percent", "goes"), [(25, False), (22, True)])
def test_a_node_at_the_mean_takes_nothing_from_nodes_above_the_band(percent, goes):
    """Only what is below the mean is a destination; n3 would be, but its taint keeps pods away."""
    nodes = [node("n1"), node("n2"), node("n3", taints=("k:NoSchedule",))]
    usage = {f"a{number}": 5 for number in range(8)}
    pods = [pod(name) for name in usage]

    ledger = decide(
        cluster(nodes, pods, usage, {"n2": percent, "n3": 10}),
        low({"cpu": 10}, {"cpu": 10}, useDeviationThresholds=True),
    )

    assert bool(ledger.evictions) is goes


def test_nodes_within_the_band_are_left_alone():
    """All within 10 below and 30 above the mean."""
    assert evicted(deviation({"n1": 40, "n2": 30, "n3": 25})) == []
