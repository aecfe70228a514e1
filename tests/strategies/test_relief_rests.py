"""Relief does not move one pod again and again, and brings low nodes into the band around the mean."""

from collections import Counter

import pytest

from tests.make import decide, evicted, owner, refused
from tests.measured import cluster, low, node, pod, points

NODES = (node("n1"), node("n2"), node("n3"))


@pytest.mark.parametrize(
    ("ages", "goes"),
    [
        pytest.param((60, 60), "new", id="all came together"),
        pytest.param((70, 60), "new", id="within seconds of each other"),
        pytest.param((4000, 60), "old", id="one came lately, after the other"),
        pytest.param((4000, 1199), "old", id="not yet twenty minutes ago"),
        pytest.param((4000, 1200), "new", id="it came twenty minutes ago"),
    ],
)
def test_a_pod_that_has_just_replaced_another_stays(ages, goes):
    """The younger of two pods cures best, but goes only if it did not come lately and after its sibling."""
    usage = {"old": 40, "new": 35}
    pods = [pod(name, age=age, owners="web") for name, age in zip(usage, ages, strict=True)]

    ledger = decide(cluster(NODES, pods, usage), low())

    assert evicted(ledger) == [goes]
    assert refused(ledger) == ({"new": "Newcomer"} if goes == "old" else {})


@pytest.mark.parametrize(("age", "goes"), [(299, []), (300, ["single"])])
def test_a_young_pod_without_siblings_stays(age, goes):
    """Nothing tells whether it replaced another."""
    pods = [pod("single", age=age), pod("rest", owners=[owner("agent", kind="DaemonSet")])]

    assert evicted(decide(cluster(NODES, pods, {"single": 45, "rest": 30}), low(targets=70))) == goes


def deviation(usage):
    """Pods of two percent each, so many on each node; the band reaches 10 points below and 30 above the mean."""
    nodes = [node(name) for name in usage]
    pods = [pod(f"{name}-{number}", on=name) for name, percent in usage.items() for number in range(percent // 2)]
    usage = {each.name: 2 for each in pods}
    return decide(cluster(nodes, pods, usage), low({"cpu": 10}, {"cpu": 30}, useDeviationThresholds=True))


def test_low_nodes_are_brought_into_the_band_a_few_moves_a_cycle():
    """The mean is 30: n1 gives to n3 (10), two pods a cycle for each node that is below its edge (20)."""
    ledger = deviation({"n1": 40, "n2": 40, "n3": 10})

    assert Counter(entry.pod.node for entry in ledger.evictions) == {"n1": 2}
    assert "points above the mean, and others are low" in ledger.evictions[0].because
    assert len(deviation({"n1": 50, "n2": 46, "n3": 10, "n4": 10}).evictions) == 4


def test_a_node_that_is_low_in_one_resource_is_filled_too():
    """The means are 20 of cpu and 31 of memory; n3 lacks memory and has cpu: it gets what n1 can best spare."""
    usage = {"a": points(20, 25), "b": points(5, 22), "c": points(5, 40), "d": points(30, 5)}
    pods = [pod("a"), pod("b"), pod("idle", cpu="3"), pod("c", on="n2", cpu="2"), pod("d", on="n3")]
    args = {"thresholds": {"cpu": 40, "memory": 20}, "targets": {"cpu": 60, "memory": 30}}

    assert evicted(decide(cluster(NODES, pods, usage), low(**args, useDeviationThresholds=True))) == ["b"]


def test_nodes_within_the_band_are_left_alone():
    """All within 10 below and 30 above the mean."""
    assert evicted(deviation({"n1": 40, "n2": 30, "n3": 25})) == []
