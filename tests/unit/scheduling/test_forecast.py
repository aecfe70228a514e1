"""kube-scheduler's scores, which differ from version to version; the newest kubelet tells which one it is."""

import pytest

from rebalancer.cluster.cluster import Cluster
from rebalancer.scheduling.forecast import Forecast
from tests import make
from tests.measured import node, pod

#: The shares of cpu and memory that are requested: both nodes have as much left, and one is out of balance.
UNEVEN, EVEN = {"cpu": "500m", "memory": "35Gi"}, {"cpu": "2", "memory": "20Gi"}


def likely(coming, *versions):
    """Where a pod of the node `home` would go."""
    nodes = [node("even"), node("uneven"), node("home", unschedulable=True)]
    nodes += [node(f"v{number}", unschedulable=True, kubelet_version=each) for number, each in enumerate(versions)]
    pods = [pod("a", on="even", **EVEN), pod("b", on="uneven", **UNEVEN), coming]
    forecast = Forecast(Cluster(make.snapshot(nodes, pods)))
    return [each.name for each in forecast.likely(coming)]


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


def test_up_to_a_hundred_nodes_are_all_scored():
    """Siblings run on all but n99, which has the most requests."""
    assert likely_of(100) == ["n99"]


def test_of_more_nodes_those_with_the_least_requests_are_likely():
    """The scheduler scores a part of them, nobody knows which."""
    assert len(likely_of(101)) == 32
    assert "n99" not in likely_of(101)


def likely_of(count):
    """Where a pod of the node `home` would go whose siblings run on all of so many nodes but n99."""
    names = [f"n{number:02}" for number in range(count)]
    coming = pod("p", on="home", owners="web")
    pods = [pod(f"on-{name}", on=name, **({"cpu": "2"} if name == "n99" else {"owners": "web"})) for name in names]
    forecast = Forecast(Cluster(make.snapshot([*map(node, names), node("home", unschedulable=True)], [*pods, coming])))
    return [each.name for each in forecast.likely(coming)]


def test_at_home_it_is_scored_as_if_it_had_left():
    """The pod has made its node's cpu and memory uneven, and would do so again; it goes where it makes them even."""
    nodes = [node("home"), node("uneven")]
    coming = pod("p", on="home", cpu="1", memory=None)
    pods = [coming, pod("a", on="home", **EVEN), pod("b", on="uneven", **UNEVEN)]
    forecast = Forecast(Cluster(make.snapshot(nodes, pods)))

    assert [each.name for each in forecast.likely(coming)] == ["uneven"]
