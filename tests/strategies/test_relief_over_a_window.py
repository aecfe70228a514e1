"""What a window hides: pods that have left still count in its figure, pods that came do not yet."""

from datetime import timedelta

import pytest

from rebalancer.report.words import text
from tests.make import decide, evicted, refused
from tests.measured import cluster, low, low_anywhere, node, pod, points

NODES = (node("n1"), node("n2"))
QUARTER = {"window": timedelta(minutes=15)}


def because(ledger):
    return {entry.pod.name: text(entry.because) for entry in ledger.evictions}


def test_pods_that_have_left_are_no_excess():
    """The window says 80: 30 of a pod that is gone, 10 of nobody; the 50 that are left are the target."""
    used = {("default", "a"): points(20), ("default", "b"): points(20), ("default", "gone"): points(30)}
    fields = {**QUARTER, "nodes": {"n1": points(80), "n2": points(0)}, "pods": used}
    pods = [pod("a"), pod("b")]

    known = {**fields, "pod_nodes": {("default", "gone"): "n1"}}
    assert evicted(decide(cluster(NODES, pods, {}, measured=known), low_anywhere())) == []
    assert evicted(decide(cluster(NODES, pods, {}, measured=fields), low_anywhere())) == ["a", "b"]


def test_both_figures_must_be_over():
    """The window says 60, the present pods 75 and 5 nobody's: 10 are over, and one of 10 cures."""
    nodes = {"n1": points(60), "n2": points(0)}
    ledger = decide(
        cluster(
            NODES, [pod("a"), pod("b"), pod("c")], {"a": 45, "b": 20, "c": 10}, measured={**QUARTER, "nodes": nodes}
        ),
        low(),
    )

    assert because(ledger) == {
        "c": "n1 at cpu 60 % > 50 %: 10 points over; relieves 10 points; likely lands on n2 (cpu 0 % -> 10 %)",
    }


def test_terminating_pods_are_no_excess():
    """They use 30 of 70 and will soon be gone; without a window too."""
    pods = [pod("a"), pod("b"), pod("leaving", terminating=True)]

    assert evicted(decide(cluster(NODES, pods, {"a": 20, "b": 20, "leaving": 30}), low())) == []
    assert evicted(decide(cluster(NODES, pods, {"a": 20, "b": 31, "leaving": 19}), low())) == ["a"]


def test_terminating_pods_are_no_excess_of_pods():
    """Six of ten slots are taken, but only five by pods that stay."""
    nodes = (node("n1", pods=10), node("n2", pods=10))
    pods = [pod(f"p{number}", terminating=number > 4) for number in range(6)]

    assert evicted(decide(cluster(nodes, pods, {each.name: 1 for each in pods}), low({"pods": 20}, {"pods": 50}))) == []


def test_what_left_earlier_in_the_cycle_is_gone():
    """The second run sees the node without the pods that the first one took, though the figures are the same."""
    on = cluster(NODES, [pod("a"), pod("b"), pod("c")], {"a": 30, "b": 30, "c": 20})
    ledger = decide(on, low(), low())

    assert [run.evicted for run in ledger.runs] == [1, 0]


@pytest.mark.parametrize(("age", "goes"), [(899, False), (900, True)])
def test_pods_younger_than_the_window_stay(age, goes):
    """Nobody knows yet what they use; two came together, so neither replaced another."""
    pods = [pod("young", age=age, owners="web"), pod("twin", age=age, owners="web"), pod("old")]
    ledger = decide(cluster(NODES, pods, {"young": 30, "twin": 0, "old": 51}, measured=QUARTER), low())

    assert evicted(ledger) == (["young"] if goes else [])
    assert goes or refused(ledger)["young"] == "YoungerThanWindow"


@pytest.mark.parametrize(("age", "goes"), [(299, False), (300, True)])
def test_a_short_window_counts_as_five_minutes(age, goes):
    """Start-up is not sustained load."""
    measured = {"window": timedelta(minutes=1)}
    pods = [pod("young", age=age, owners="web"), pod("twin", age=age, owners="web"), pod("old")]
    ledger = decide(cluster(NODES, pods, {"young": 30, "twin": 0, "old": 51}, measured=measured), low())

    assert evicted(ledger) == (["young"] if goes else [])


def test_without_a_window_age_is_no_matter():
    """A sample of the moment shows all pods there are; these two came together, so neither replaced another."""
    pods = [pod("young", age=20, owners="web"), pod("twin", age=20, owners="web"), pod("old")]

    assert evicted(decide(cluster(NODES, pods, {"young": 30, "twin": 0, "old": 51}), low())) == ["young"]


@pytest.mark.parametrize(
    ("late", "usage", "window", "outcome"),
    [
        pytest.param({"age": 60}, 21, QUARTER, "full", id="by usage it is above the threshold of 20"),
        pytest.param({"age": 60, "cpu": "2100m"}, None, QUARTER, "full", id="by requests it is above the threshold"),
        pytest.param({"age": 60}, 15, QUARTER, "no room", id="by usage 15 are taken, and 35 left"),
        pytest.param({"age": 60, "cpu": "1500m"}, None, QUARTER, "no room", id="by requests 15 are taken"),
        pytest.param({"age": 60, "cpu": "1500m"}, None, {}, "no room", id="without a window, and no sample of it yet"),
        pytest.param({"age": 60, "cpu": "1500m"}, 1, {}, "room", id="without a window its sample is in the node's"),
        pytest.param({"age": 900, "cpu": "1500m"}, 15, QUARTER, "room", id="an old one is in the figures"),
    ],
)
def test_pods_that_came_of_late_are_charged_to_their_node(late, usage, window, outcome):
    """The figure of n2 does not show them: its target of 50 has room for `a` with 36, or none, or it is full itself."""
    pods = [pod("a"), pod("b"), pod("late", on="n2", **late)]
    measured = {**window, "nodes": {"n1": points(86), "n2": points(0)}}
    ledger = decide(cluster(NODES, pods, {"a": 36, "b": 50, "late": usage}, measured=measured), low_anywhere())

    assert evicted(ledger) == (["a"] if outcome == "room" else [])
    assert set(refused(ledger)) == ({"a", "b"} if outcome == "no room" else set())


def test_the_name_may_have_been_another_pods():
    """web-0 was measured on n2 and runs on n1 since: what it uses here is unknown."""
    pods = [pod("web-0"), pod("rest")]
    measured = {"pod_nodes": {("default", "web-0"): "n2"}, "nodes": {"n1": points(80), "n2": points(10)}}
    ledger = decide(cluster(NODES, pods, {"web-0": 40, "rest": 51}, measured=measured), low())

    assert refused(ledger) == {"web-0": "NoUsage", "rest": "NoDestination"}
