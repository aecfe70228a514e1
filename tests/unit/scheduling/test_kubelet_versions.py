"""kube-scheduler's scores, which differ from version to version; the newest kubelet tells which one it is."""

import pytest

from rebalancer.scheduling.simulation import Simulation
from tests import make
from tests.measured import node, pod

#: The shares of cpu and memory that are requested: both nodes have as much left, and one is out of balance.
UNEVEN, EVEN = {"cpu": "500m", "memory": "35Gi"}, {"cpu": "2", "memory": "20Gi"}


def likely(coming, *versions):
    """Where a pod of the node `home` would go."""
    nodes = [node("even"), node("uneven"), node("home", unschedulable=True)]
    nodes += [node(f"v{number}", unschedulable=True, kubelet_version=each) for number, each in enumerate(versions)]
    pods = [pod("a", on="even", **EVEN), pod("b", on="uneven", **UNEVEN), coming]
    return list(make.cluster(nodes, pods).index(Simulation).ask(coming).nodes)


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        pytest.param(["v1.35.2"], ["even"], id="the balance with the pod counts"),
        pytest.param(["v1.36.0"], ["uneven"], id="since 1.36 the change of it"),
        pytest.param(["v1.34.9", "v1.36.0-gke.100", "v1.35.2"], ["uneven"], id="the newest kubelet tells"),
        pytest.param(["v1.35.1+k3s1", "kwok-v0.7.0", ""], ["even"], id="others tell nothing"),
        pytest.param(["kwok-v1.30.0"], ["uneven"], id="if none tells it is the newest version known"),
    ],
)
def test_a_pod_of_cpu_alone(versions, expected):
    """On the node with more requests of memory it makes cpu and memory more even, on the other less."""
    assert likely(pod("p", on="home", cpu="1", memory=None), *versions) == expected


@pytest.mark.parametrize(("version", "expected"), [("v1.32.5", ["even"]), ("v1.33.0", ["even", "uneven"])])
def test_a_pod_that_requests_nothing(version, expected):
    """Since 1.33 the balance of nodes does not matter to it."""
    assert likely(pod("p", on="home", cpu=None), version) == expected
