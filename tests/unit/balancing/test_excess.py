"""Points above target: what counts as above, what a pod leaves, and what noise of floating point does not matter."""

import pytest

from rebalancer.balancing.relief import furthest_first
from rebalancer.balancing.utilization import Excess, NodeUtilization
from rebalancer.report.layout import number_text
from tests.measured import node


def level(**used):
    return NodeUtilization(node("n1"), used)


def test_points_above_target_are_summed():
    """70 and 65 with targets of 50 and 60 are 25 over; 10 of cpu and 9 of memory leave 10."""
    excess = level(cpu=7000, memory=65 << 30).above({"cpu": 50, "memory": 60})

    assert excess == Excess({"cpu": 20.0, "memory": 5.0})
    assert excess.total == 25
    assert excess.left({"cpu": 10.0, "memory": 9.0}) == 10
    assert excess.left({"cpu": 21.0, "memory": 7.0, "pods": 1.0}) == 0
    assert excess.beyond({"cpu": 21.0, "memory": 7.0, "pods": 1.0}) == 3


def test_what_a_node_does_not_offer_is_never_above():
    """Nor has it room for any of it."""
    here = NodeUtilization(node("n1"), {"cpu": 0, "example.com/gpu": 0})

    assert here.above({"example.com/gpu": 0}).points == {}
    assert here.passed({"example.com/gpu": 1}, {}) == ("example.com/gpu", 100.0)
    assert here.headroom({})["example.com/gpu"] == 0


@pytest.mark.parametrize("percent", range(1, 100))
def test_noise_is_no_excess(percent):
    """7 / 100 * 100 is more than 7 in floating point: the same share is neither above nor without room for itself."""
    here, empty = level(cpu=percent * 100), level(cpu=0)

    assert here.within({"cpu": percent})
    assert empty.passed({"cpu": percent * 100}, {"cpu": percent}) is None
    assert empty.headroom({"cpu": percent}) == {"cpu": percent * 100}
    assert not level(cpu=percent * 100 + 1).within({"cpu": percent})
    assert empty.passed({"cpu": percent * 100 + 1}, {"cpu": percent}) == ("cpu", percent)


@pytest.mark.parametrize(("number", "text"), [(6.14, "6.1"), (6.0, "6"), (0.04, "0"), (33, "33")])
def test_numbers_have_one_decimal_at_most(number, text):
    """And none if it is nought."""
    assert number_text(number) == text


def test_nodes_that_are_equally_far_above_go_by_name() -> None:
    """Both are 121.79 points above, which floating point adds up to two numbers that differ in their last digit."""
    targets = {"cpu": 86.96428571428572, "memory": 100.0}
    used = {"n0": {"cpu": 2425, "memory": 187_500_000}, "n1": {"cpu": 2675, "memory": 175_000_000}}
    nodes = [NodeUtilization(node(name, cpu="2", memory="100M"), used[name]) for name in ("n1", "n0")]

    assert [each.node.name for each in furthest_first(nodes, targets)] == ["n0", "n1"]
