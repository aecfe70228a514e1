"""Scores plugin by plugin, as worked sums."""

import numpy as np
import pytest

from rebalancer.cluster.node import Node
from rebalancer.cluster.scheduler_inputs import SchedulerInputs
from rebalancer.scheduling.simulator.plugins.resources import (
    Column,
    most_allocated,
    requested_to_capacity_ratio,
)
from rebalancer.scheduling.simulator.profile import profiles
from rebalancer.scheduling.simulator.simulator import Simulator
from rebalancer.scheduling.simulator.state import State
from tests import make
from tests.unit.scheduling.simulator.configured import configured

READ = SchedulerInputs(services={}, replica_sets={}, replication_controllers={}, stateful_sets={})


def scores(nodes: list[Node], residents: list, pod, name: str = "n1", minor: int = 36, **options) -> dict[str, int]:
    state = State(make.snapshot(nodes, residents, namespaces={}), READ, minor)
    return dict(Simulator(state, lambda state: profiles(state, **options)).ask(pod).scores(name))


@pytest.mark.parametrize(
    ("minor", "expected"),
    [
        (32, 75),  # shares 3/4 and 1/4: 100 less a deviation of 25
        (35, 75),
        (36, 68),  # from 87 (1/2 and 1/4) to 75: 50 + (50 - 12) / 2, cut off
    ],
)
def test_balance_counts_as_the_version_has_it(minor: int, expected: int) -> None:
    """Since 1.36 by how much a pod changes it."""
    resident = make.pod("a", cpu="2", memory="4Gi")

    found = scores([make.node("n1", cpu="4", memory="16Gi")], [resident], make.pod("b", cpu="1"), minor=minor)

    assert found["NodeResourcesBalancedAllocation"] in (expected, expected + 1)


def test_strategies_score_what_is_requested() -> None:
    """MostAllocated weighs shares; a falling shape is cut off towards zero."""

    def column(asked: int, offered: int, weight: int) -> Column:
        return Column(np.array([asked]), np.array([offered]), weight)

    assert most_allocated([column(1000, 4000, 3), column(8, 16, 1)]) == [(25 * 3 + 50) // 4]
    falling = requested_to_capacity_ratio([(0, 10), (70, 0)])
    assert falling([column(25, 100, 1)]) == [100 - 100 * 25 // 70]


@pytest.mark.parametrize(("pods", "expected"), [(21, 80), (17, 84), (25, 77)])
def test_nodes_with_few_pods(pods: int, expected: int) -> None:
    """Of 110 pods a node."""
    configuration = configured({"plugins": {"score": {"enabled": [{"name": "PodCapacityOfNode"}]}}})
    residents = [make.pod(f"p{number}", cpu=None) for number in range(pods)]

    found = scores([make.node("n1"), make.node("n2")], residents, make.pod("a"), configuration=configuration)

    assert found["PodCapacityOfNode"] == expected
