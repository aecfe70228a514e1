"""Nodes that wait for the scheduler to choose them: what others must request first."""

import pytest

from rebalancer.cluster.cluster import Cluster
from rebalancer.scheduling.choice_distance import ChoiceDistance
from rebalancer.scheduling.forecast import Forecast
from tests import make

PERCENT_CPU, PERCENT_MEMORY = 100, 100  # of a node with 10 cores and 10,000 MiB: millicores, MiB


def distances(requested, waiting="low"):
    """Nodes that request so many percent of cpu and of memory."""
    nodes = [make.node(name, cpu="10", memory="10000Mi") for name in requested]
    pods = [pod_of(percent, f"on-{name}", node=name) for name, percent in requested.items()]
    return ChoiceDistance(Forecast(Cluster(make.snapshot(nodes, pods))), [waiting]), {node.name: node for node in nodes}


def pod_of(percent, name="new", node="elsewhere"):
    cpu, memory = f"{percent * PERCENT_CPU}m", f"{percent * PERCENT_MEMORY}Mi"
    return make.pod(name, node=node, cpu=cpu, memory=memory)


@pytest.mark.parametrize(
    ("requested", "place", "shortened_by"),
    [
        pytest.param({"low": 20, "a": 15, "b": 19}, "a", 3, id="a rival catches up by what the pod requests"),
        pytest.param({"low": 20, "a": 15, "b": 19}, "b", 1, id="but no further than to the node itself"),
        pytest.param({"low": 20, "a": 15, "b": 30}, "b", 0, id="who requests more does not compete"),
        pytest.param({"low": 20, "a": 15, "b": 19}, "low", -6, id="both rivals fall back by what the node gets"),
        pytest.param({"low": 20, "a": 15, "b": 22}, "low", -4, id="and the one that was ahead becomes a rival"),
        pytest.param({"low": 50, "a": 15, "b": 19}, "a", 0, id="a node far behind does not come into question"),
        pytest.param({"low": 37, "a": 15, "b": 60}, "a", 1, id="unless the pod brings it near: of 22 points 20 count"),
    ],
)
def test_rivals_catch_up(requested, place, shortened_by):
    waiting, nodes = distances(requested)

    assert waiting.shortened_by(pod_of(3), nodes[place], satisfied=False) == pytest.approx(shortened_by)


def test_a_node_that_has_enough_waits_no_more():
    """Its rivals were 6 points behind."""
    waiting, nodes = distances({"low": 20, "a": 15, "b": 19})

    assert waiting.shortened_by(pod_of(3), nodes["low"], satisfied=True) == pytest.approx(6)


def test_what_requests_nothing_counts_as_the_scheduler_assumes():
    """100 millicores and 200 MiB: one percent and two."""
    waiting, nodes = distances({"low": 20, "a": 15})

    assert waiting.shortened_by(make.pod("new", cpu=None), nodes["a"], satisfied=False) == pytest.approx(1.5)


def test_without_an_exact_forecast_nobody_waits():
    """Of larger clusters nobody knows which node the scheduler takes."""
    waiting, nodes = distances({"low": 20, "a": 15, **{f"n{number}": 50 for number in range(99)}})

    assert waiting.shortened_by(pod_of(3), nodes["a"], satisfied=False) == 0
    assert ChoiceDistance(None, ["low"]).shortened_by(pod_of(3), nodes["a"], satisfied=False) == 0
