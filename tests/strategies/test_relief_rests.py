"""Relief does not move one pod again and again, and brings low nodes into the band around the mean."""

from collections import Counter

import pytest

from tests.make import decide, evicted, refused
from tests.measured import cluster, low, node, pod

NODES = (node("n1"), node("n2"), node("n3"))


@pytest.mark.parametrize(
    ("ages", "goes"),
    [
        pytest.param((60, 60), "new", id="all came together"),
        pytest.param((70, 60), "new", id="within seconds of each other"),
        pytest.param((4000, 60), "old", id="one came lately, after the other"),
        pytest.param((4000, 400), "new", id="it came more than five minutes ago"),
    ],
)
def test_a_pod_that_has_just_replaced_another_stays(ages, goes):
    """The younger of two pods cures best, but goes only if it did not come lately and after its sibling."""
    usage = {"old": 40, "new": 35}
    pods = [pod(name, age=age, owners="web") for name, age in zip(usage, ages, strict=True)]

    ledger = decide(cluster(NODES, pods, usage), low())

    assert evicted(ledger) == [goes]
    assert refused(ledger) == ({"new": "Newcomer"} if goes == "old" else {})


def test_a_pod_without_siblings_is_no_newcomer():
    """Nothing tells whether it was moved: it is its own eldest."""
    ledger = decide(
        cluster(NODES, [pod("single", age=60), pod("rest", age=60, owners="db")], {"single": 45, "rest": 30}), low()
    )

    assert evicted(ledger) == ["rest"]


def deviation(usage):
    """Pods of one percent each, so many on each node; the band reaches 10 points below and 30 above the mean."""
    nodes = [node(name) for name in usage]
    pods = [pod(f"{name}-{number}", on=name) for name, count in usage.items() for number in range(count)]
    usage = {each.name: 1 for each in pods}
    return decide(cluster(nodes, pods, usage), low({"cpu": 10}, {"cpu": 30}, useDeviationThresholds=True))


def test_low_nodes_are_brought_into_the_band_when_none_is_above_it():
    """Means 30: n1 and n2 (40) give 15 to n3 (10), which then is halfway from the band's edge (20) to the mean."""
    ledger = deviation({"n1": 40, "n2": 40, "n3": 10})

    assert len(ledger.evictions) == 15
    assert "points above the mean, and others are low" in ledger.evictions[0].because


def test_nobody_gives_more_than_down_to_the_mean():
    """The mean is 30, n3 needs 13 to come from 12 to 25: n1 gives the 9 it has above the mean, n2 the rest."""
    ledger = deviation({"n1": 39, "n2": 39, "n3": 12, "n4": 30})

    assert Counter(entry.pod.node for entry in ledger.evictions) == {"n1": 9, "n2": 4}


def test_nodes_within_the_band_are_left_alone():
    """All within 10 below and 30 above the mean."""
    assert evicted(deviation({"n1": 40, "n2": 30, "n3": 25})) == []
