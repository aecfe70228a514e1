"""Usage from metrics-server's objects: what counts as a sample, and what becomes of nodes and pods without one."""

from datetime import timedelta

import pytest

from rebalancer.cluster.measured import NodeMetrics, PodMetrics
from rebalancer.errors import StrategyError
from rebalancer.usage.metrics_server import Metrics
from tests.make import NOW, cluster, pod
from tests.unit.usage.settings import Sources, nodes, unread

PROVIDER = {"source": "KubernetesMetrics"}
USED = {"cpu": 1000, "memory": 2048}


def taken(age):
    return None if age is None else NOW - timedelta(seconds=age)


def metrics(count, *more, pods=(), **ages):
    """Samples of n1 ... n<count>, and more; `ages` in seconds by node, None for no time."""
    names = [f"n{number}" for number in range(1, count + 1)]
    return Metrics([*(NodeMetrics(name, USED, taken(ages.get(name, 0))) for name in names), *more], pods)


def measure(found, count=2, pods=(), provider=PROVIDER, collector=False, **wanted):
    given = [provider] if provider else []
    sources = Sources(*given, metrics=found, collector=collector)
    return sources.measure(cluster(nodes(count), pods), **{"source": "KubernetesMetrics", **wanted})


def test_cpu_and_memory_of_nodes_and_pods():
    of_pod = PodMetrics("default", "a", {"cpu": 10, "memory": 20, "storage": 5}, NOW)
    found = measure(metrics(2, pods=[of_pod]))

    assert found.nodes == found.peaks == {"n1": USED, "n2": USED}
    assert found.pods == {("default", "a"): {"cpu": 10, "memory": 20}}
    assert found.warnings == ()


@pytest.mark.parametrize(("together", "believed"), [(2000, True), (2001, False)])
def test_a_node_that_contradicts_its_pods_is_unknown(together, believed):
    """It uses 1000m by its own figure, and its pods use more than twice as much: one of the figures is wrong."""
    on_it = [pod("a", "n1"), pod("b", "n1"), pod("c", "n2")]
    of_pods = [PodMetrics("default", name, {"cpu": used}, NOW) for name, used in (("a", together - 100), ("b", 100))]
    found = measure(metrics(2, pods=of_pods), pods=on_it, minFreshNodes=50)

    assert ("n1" in found.nodes) is believed
    assert "n2" in found.nodes
    if not believed:
        assert found.missing == {"n1": "its pods use more than twice the cpu that it seems to use: 2001 and 1000"}


@pytest.mark.parametrize(
    ("wanted", "missing"),
    [
        ({}, {"n3": "its sample is 3m1s old, more than 3m"}),
        ({"maxSampleAge": "1h"}, {}),
        ({"maxSampleAge": "150s"}, dict.fromkeys(("n2",), "its sample is 3m old, more than 2m30s")),
    ],
)
def test_an_old_sample_does_not_count(wanted, missing):
    """Three minutes unless the policy says otherwise; a sample without a time counts as fresh."""
    found = measure(metrics(5, n2=180, n3=181, n4=None), 5, minFreshNodes=50, **wanted)

    assert missing.items() <= found.missing.items()
    assert "n4" in found.nodes
    assert found.nodes.keys() | found.missing.keys() == {"n1", "n2", "n3", "n4", "n5"}


def test_a_sample_from_the_future_does_not_count():
    """Clocks may be a minute apart."""
    found = measure(metrics(3, n2=-60, n3=-3661), 3, minFreshNodes=50, maxSampleAge="9h")

    assert found.missing == {"n3": "its sample is from the future, 1h1m1s ahead"}


def test_pods_without_a_fresh_sample_are_unknown():
    """Nothing is zero by itself; an empty sample says nothing of any resource."""
    ages = {"old": 200, "early": -60, "future": -61}
    pods = [PodMetrics("default", "empty", {}, NOW)]
    pods += [PodMetrics("default", name, USED, taken(age)) for name, age in ages.items()]
    found = measure(metrics(2, pods=pods))

    assert found.pods == {("default", "empty"): {}, ("default", "early"): USED}


def test_a_node_that_appears_after_the_list_is_missing():
    """So is one whose sample is incomplete; nodes of no interest do not count."""
    found = measure(metrics(1, NodeMetrics("n2", {"cpu": 1}, NOW), NodeMetrics("gone", USED)), 3, minFreshNodes=0)

    assert found.missing == {"n2": "its sample has no memory", "n3": "metrics-server does not know it"}
    assert found.nodes.keys() == {"n1"}


@pytest.mark.parametrize(
    ("known", "wanted", "fails"),
    [
        (10, {}, ""),
        (8, {}, ""),
        (7, {}, "only 7 of 10 nodes have fresh usage, and minFreshNodes is 80 %"),
        (9, {"minFreshNodes": 100}, r"9 of 10 .* 100 %: n10 \(metrics-server does not know it\)"),
        (1, {"minFreshNodes": 10}, ""),
    ],
)
def test_a_tenth_missing_is_a_warning_and_half_an_error(known, wanted, fails):
    """80 % of the nodes have to be fresh unless the policy says otherwise, 80 % itself is enough; three are named."""
    if fails:
        with pytest.raises(StrategyError, match=fails):
            measure(metrics(known), 10, **wanted)
        return
    found = measure(metrics(known), 10, **wanted)

    assert len(found.nodes) == known
    assert len(found.warnings) == (known < 10)
    assert known > 1 or found.warnings[0].endswith("n3 (metrics-server does not know it) and 6 more")


def test_requests_stand_in_where_the_policy_says_so():
    """For the nodes that are missing and for their pods, with a warning; however many they are."""
    pods = [pod("a", node="n1", cpu="200m"), pod("b", node="n2", cpu="300m", memory="1Gi"), pod("c", node="n2")]
    of_pod = PodMetrics("default", "a", USED, NOW)
    found = measure(metrics(1, pods=[of_pod]), 3, pods, whenMissing="requests")

    assert found.nodes["n1"] == USED
    assert found.nodes["n2"] == found.peaks["n2"] == {"cpu": 400, "memory": 1 << 30}
    assert found.nodes["n3"] == {"cpu": 0, "memory": 0}
    assert found.pods[("default", "a")] == USED
    assert found.pods[("default", "b")] == {"cpu": 300, "memory": 1 << 30}
    assert found.missing == {}
    assert found.warnings[0].startswith("requests stand in for missing usage: n2 (metrics-server does not know it)")


def test_requests_stand_in_for_a_source_that_is_down():
    """It is asked once, however many strategies want to know."""
    asked = []
    sources = Sources(PROVIDER, read_metrics=lambda: asked.append(1) or unread())
    on = cluster(nodes(2), [pod("a", cpu="200m")])
    with pytest.raises(StrategyError, match="not meant to be read"):
        sources.measure(on, source="KubernetesMetrics")
    found = sources.measure(on, source="KubernetesMetrics", whenMissing="requests")

    assert found.nodes["n1"] == {"cpu": 200, "memory": 0}
    assert found.pods == {("default", "a"): {"cpu": 200, "memory": 0}}
    assert "not meant to be read" in found.warnings[0]
    assert asked == [1]


@pytest.mark.parametrize("wanted", [{"source": "KubernetesMetrics"}, {"source": "", "metricsServer": True}])
def test_a_source_has_to_be_set_up(wanted):
    """By a provider or the deprecated switch, as in the descheduler; requests do not stand in for it."""
    found = metrics(2)
    with pytest.raises(StrategyError, match=r"KubernetesMetrics is not set up: add `- source: KubernetesMetrics` to"):
        measure(found, provider=None, whenMissing="requests", **wanted)

    assert measure(found, provider=None, collector=True, **wanted).nodes
    assert measure(found, **wanted).nodes
