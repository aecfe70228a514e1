"""Relief does not move one pod again and again, and brings low nodes into the band around the mean."""

from collections import Counter

import pytest

from rebalancer.report.words import text
from tests.make import decide, evicted
from tests.measured import RELIEF, cluster, low, low_anywhere, node, pod

NODES = (node("n1"), node("n2"), node("n3"))


@pytest.mark.parametrize(("rest", "goes"), [("90m", "old"), ("1h", "new"), ("0s", "new")])
def test_how_long_a_replacement_rests_is_for_the_policy_to_say(rest, goes):
    """The younger one cures best; it replaced another an hour ago."""
    pods = [pod("old", age=86_400, owners="web"), pod("new", age=3600, owners="web")]
    decider = low(metricsUtilization={**RELIEF, "rest": rest})

    assert evicted(decide(cluster(NODES, pods, {"old": 40, "new": 35}), decider)) == [goes]


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
