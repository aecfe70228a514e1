"""Relief does not move one pod again and again, and brings low nodes into the band around the mean."""

from collections import Counter

import pytest

from rebalancer.report.words import text
from tests.make import decide, evicted, owner, refused
from tests.measured import RELIEF, cluster, low, low_anywhere, node, pod

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
