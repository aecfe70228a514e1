"""How even a cluster is: deviation, highest node, nodes over target and outside the band around the mean."""

import pytest

from tests.outcome.policies import Bounds
from tests.outcome.state import State, below_band, over


def nodes(*cpu, memory=50.0):
    return {f"n{number}": {"cpu": value, "memory": memory} for number, value in enumerate(cpu)}


STATIC = Bounds({"cpu": 35, "memory": 35}, {"cpu": 55, "memory": 55}, deviation=False)
BAND = Bounds({"cpu": 10, "memory": 10}, {"cpu": 10, "memory": 10}, deviation=True)


def test_deviation_is_that_of_all_nodes_not_of_a_sample():
    """Half of the nodes at 60 and half at 0 deviate by 30."""
    state = State(nodes(60, 0, 60, 0), nodes(60, 0, 57, 0), {})

    assert state.deviation("cpu") == pytest.approx(30)
    assert state.deviation("memory") == 0
    assert state.highest("cpu") == 60
    assert state.noise == 3


def test_pods_without_a_node_are_pending():
    """A pod that no node takes is counted."""
    assert State(nodes(1), nodes(1), {"a": "n0", "b": ""}).pending == 1


def test_a_node_is_over_above_the_target_of_any_resource():
    """Exactly at target is not over; one resource above is enough."""
    assert over(nodes(55, 55.1, 10), STATIC) == {"n1"}
    assert over(nodes(10, 20, memory=56), STATIC) == {"n0", "n1"}
    assert below_band(nodes(0, 0), STATIC) == set()


def test_the_band_is_around_the_mean_of_all_nodes():
    """The mean of 10, 30 and 50 is 30: ten points off is within, more is not, on either side."""
    assert over(nodes(10, 30, 50), BAND) == {"n2"}
    assert below_band(nodes(10, 30, 50), BAND) == {"n0"}
    assert over(nodes(20, 30, 40), BAND) == below_band(nodes(20, 30, 40), BAND) == set()
