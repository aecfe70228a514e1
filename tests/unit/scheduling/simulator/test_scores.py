"""Scores plugin by plugin, as worked sums."""

import numpy as np
import pytest

from rebalancer.cluster.node import Node, NodeImage
from rebalancer.cluster.pod import Placement
from rebalancer.cluster.scheduler_inputs import SchedulerInputs
from rebalancer.scheduling.simulator.configuration import read_configuration
from rebalancer.scheduling.simulator.profile import profiles
from rebalancer.scheduling.simulator.scorers import Column, most_allocated, requested_to_capacity_ratio
from rebalancer.scheduling.simulator.simulator import Simulator
from rebalancer.scheduling.simulator.state import State
from tests import make

READ = SchedulerInputs(services={}, replica_sets={}, replication_controllers={}, stateful_sets={})


def scores(nodes: list[Node], residents: list, pod, name: str = "n1", minor: int = 36, **options) -> dict[str, int]:
    state = State(make.snapshot(nodes, residents, namespaces={}), READ, minor)
    return dict(Simulator(state, profiles(state, **options)).ask(pod).scores(name))


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


@pytest.mark.parametrize(("minor", "sits_out"), [(32, False), (33, True)])
def test_balance_sits_out_for_pods_without_requests(minor: int, sits_out: bool) -> None:
    """Since 1.33."""
    found = scores([make.node("n1")], [], make.pod("b", cpu=None), minor=minor)

    assert ("NodeResourcesBalancedAllocation" not in found) == sits_out


def test_an_image_counts_by_its_size_and_how_many_nodes_have_it() -> None:
    """Half of 1000 MB: (500 - 23) / (1000 - 23)."""
    image = NodeImage(("web:v1",), 1000 << 20)
    nodes = [make.node("n1", images=(image,)), make.node("n2")]
    pod = make.pod("a", placement=Placement(images=("web:v1",)))

    assert scores(nodes, [], pod)["ImageLocality"] == 48
    assert scores(nodes, [], pod, "n2")["ImageLocality"] == 0


def test_one_soft_taint_of_three_leaves_two_thirds() -> None:
    """100 less 100 / 3, cut off, times three."""
    nodes = [
        make.node("n1", taints=["a:PreferNoSchedule"]),
        make.node("n2", taints=["a:PreferNoSchedule", "b:PreferNoSchedule", "c:PreferNoSchedule"]),
    ]

    assert scores(nodes, [], make.pod("a"))["TaintToleration"] == 3 * 67
    assert scores(nodes, [], make.pod("a"), "n2")["TaintToleration"] == 0


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
    configuration = read_configuration(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"score": {"enabled": [{"name": "PodCapacityOfNode"}]}}}],
        }
    )
    residents = [make.pod(f"p{number}", cpu=None) for number in range(pods)]

    found = scores([make.node("n1"), make.node("n2")], residents, make.pod("a"), configuration=configuration)

    assert found["PodCapacityOfNode"] == expected
