"""Percentages, caps, means and room: the arithmetic of the utilization strategies (strategies.md 3.4 to 3.7)."""

import pytest

from rebalancer.balancing.cause_details import above_caps, underutilized
from rebalancer.balancing.relief import furthest_first
from rebalancer.balancing.utilization import NodeUtilization
from rebalancer.cluster.node import Node
from rebalancer.cluster.resources import parse_resources
from rebalancer.report.words import text as words_of
from tests.make import node


def load(used, taints=(), **offered):
    """A node that offers and uses these quantities."""
    extra = {"cpu": "4", "memory": "16Gi", "pods": "110", **offered}
    return NodeUtilization(node("n1", taints=taints, extra=extra), parse_resources(used))


def test_what_is_not_offered_or_not_used_has_no_percentage():
    """It counts as unused where thresholds ask for it, and there is no room for any of it."""
    some = load({"example.com/gpu": "2"})

    assert some.percent("example.com/gpu") is None
    assert some.percent("memory") is None
    assert some.within({"example.com/gpu": 0})
    assert load({"example.com/gpu": "0"}).passed({"example.com/gpu": 1}, {}) == ("example.com/gpu", 100.0)


def test_allocatable_counts_and_capacity_only_in_its_place():
    """A node that does not say what is allocatable offers its capacity."""
    both = Node(name="n1", capacity={"cpu": 4000}, allocatable={"cpu": 2000})
    only_capacity = Node(name="n1", capacity={"cpu": 4000})

    assert NodeUtilization(both, {"cpu": 1000}).percent("cpu") == 50
    assert NodeUtilization(only_capacity, {"cpu": 1000}).percent("cpu") == 25


@pytest.mark.parametrize(
    ("target", "capacity", "cap"),
    [(50, 9, 4), (100, 9, 9), (0, 9, 0), (29, 100, 29), (30, 100, 30), (33.3, 10, 3)],
)
def test_a_cap_is_cut_off_to_whole_units(target, capacity, cap):
    """But 0.29 * 100, a little less than 29 in floating point, is 29."""
    assert load({}, pods=str(capacity)).cap("pods", {"pods": target}) == cap


@pytest.mark.parametrize(
    ("used", "targets", "text"),
    [
        ({"cpu": "2"}, {"cpu": 50}, ""),
        ({"cpu": "3", "memory": "1Gi"}, {"cpu": 50, "memory": 50}, "cpu 75 % > 50 %"),
        ({"cpu": "3", "memory": "12Gi"}, {"cpu": 50.5, "memory": 33}, "cpu 75 % > 50.5 %, memory 75 % > 33 %"),
        ({"cpu": "5", "pods": "3"}, {"pods": 50}, "cpu 125 % > 100 %"),
        ({"cpu": "2001m"}, {"cpu": 50}, "cpu 50.02 % > 50 %"),
        ({"example.com/gpu": "2"}, {}, "example.com/gpu 2 > 0"),
    ],
)
def test_excess_in_words(used, targets, text):
    """Everything above its cap, with as many decimals as it takes to see that."""
    found = above_caps(load(used), targets)

    assert (words_of(found) if found else "") == (text and f"n1 at {text}")


def test_slack_in_words():
    """Each threshold with the figure that is not above it."""
    some = load({"cpu": "1", "memory": "2Gi"})

    assert (
        words_of(underutilized(some, {"memory": 20, "cpu": 25, "pods": 1}))
        == "n1 at cpu 25 % <= 25 %, memory 12.5 % <= 20 %, pods 0 % <= 1 %"
    )


@pytest.mark.parametrize("percent", range(1, 100))
def test_noise_is_no_excess(percent):
    """7 / 100 * 100 is more than 7 in floating point: the same share is neither above nor without room for itself."""
    here, empty, more = (load({"cpu": f"{used}m"}, cpu="10") for used in (percent * 100, 0, percent * 100 + 1))

    assert here.within({"cpu": percent})
    assert empty.passed({"cpu": percent * 100}, {"cpu": percent}) is None
    assert empty.headroom({"cpu": percent}) == {"cpu": percent * 100}
    assert not more.within({"cpu": percent})
    assert empty.passed({"cpu": percent * 100 + 1}, {"cpu": percent}) == ("cpu", percent)


def test_nodes_that_are_equally_far_above_go_by_name() -> None:
    """Both are 121.79 points above, which floating point adds up to two numbers that differ in their last digit."""
    targets = {"cpu": 86.96428571428572, "memory": 100.0}
    used = {"n0": {"cpu": 2425, "memory": 187_500_000}, "n1": {"cpu": 2675, "memory": 175_000_000}}
    nodes = [NodeUtilization(node(name, extra={"cpu": "2", "memory": "100M"}), used[name]) for name in ("n1", "n0")]

    assert [each.node.name for each in furthest_first(nodes, targets)] == ["n0", "n1"]
