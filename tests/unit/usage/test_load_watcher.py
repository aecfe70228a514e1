"""Usage from load-watcher, as it answers over HTTP."""

import re
from contextlib import nullcontext
from datetime import timedelta

import pytest

from rebalancer.cluster.measured import METRICS_SERVER, LoadFigure, NodeLoads, NodeMetrics, PodMetrics
from rebalancer.errors import StrategyError
from rebalancer.usage.metrics_server import Metrics
from tests.fake_http import Reply
from tests.fake_servers import FakeLoadWatcher
from tests.make import NOW, cluster, node, pod
from tests.unit.usage.settings import Sources, nodes

GI = 1 << 30
BUSY = {"CPU": 50, "Memory": 25}
BOTH = {"n1": BUSY, "n2": BUSY}


def measure(hosts, *others, count=2, metrics=None, min_fresh=80, ended=NOW, reply=None, on=None, pods=(), **wanted):
    """What is measured by a load-watcher that knows these hosts, or gives this reply."""
    with FakeLoadWatcher(hosts, ended=ended) as server:
        server.answers = (lambda _: reply) if reply else server.answers
        provider = {"source": "LoadWatcher", "loadWatcher": {"url": server.url}}
        return Sources(provider, *others, metrics=metrics).measure(
            cluster(on or nodes(count), pods), source="LoadWatcher", minFreshNodes=min_fresh, **wanted
        )


def test_percent_of_capacity_become_amounts():
    """Half of four cores are two, of which the node has three allocatable; pods are unknown to it."""
    found = measure({"n1": BUSY, "n2": {"CPU": 10.5, "Memory": 0}})

    assert found.nodes == found.peaks == {"n1": {"cpu": 2000, "memory": 4 * GI}, "n2": {"cpu": 420, "memory": 0}}
    assert found.pods is None


@pytest.mark.parametrize("host", ["n1", "10.0.0.1", "10.0.0.1:9100", "h1", "n1:9100"])
def test_a_host_is_a_node_by_name_or_address(host):
    """Whatever its Prometheus has for `instance`."""
    assert measure({host: BUSY, "n2": BUSY, "stranger": BUSY}).nodes.keys() == {"n1", "n2"}


def test_a_host_without_a_name_belongs_to_no_node():
    """Nor does a series without the label: a node without addresses has nothing that could match."""
    assert measure({"": BUSY}, on=[node("bare")], min_fresh=0).missing == {"bare": "load-watcher does not know it"}


@pytest.mark.parametrize("order", [1, -1])
def test_the_average_counts_before_the_latest(order):
    """Spreads are not averages, whatever their place in the list; a host may have no figures, or only a spread."""
    figures = "CPU STD 99, CPU AVG 20, CPU Latest 70, cpu Unknown 80, Memory Latest 30, memory  90, Bandwidth AVG 1e12"
    keys = ("type", "operator", "value")
    metrics = [dict(zip(keys, each.split(" "), strict=True)) for each in figures.split(", ")]
    metrics = [{**each, "value": float(each["value"])} for each in metrics][::order]
    window = {"duration": "15m", "start": 0, "end": int(NOW.timestamp())}
    hosts = {"n1": {"metrics": metrics, "new": 1}, "n2": {}, "n3": {"metrics": None}, "n4": {"metrics": metrics[:1]}}
    answer = {"window": window, "data": {"NodeMetricsMap": hosts}, "more": []}
    found = measure({}, count=4, reply=Reply(200, answer), min_fresh=0)

    assert found.nodes == {"n1": {"cpu": 800, "memory": round(0.3 * 16 * GI)}}


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        (-300, ""),
        (-301, "window of load-watcher ended 5m1s ago, more than 5m"),
        (60, ""),
        (61, "window of load-watcher ends in the future, 1m1s ahead"),
    ],
)
def test_figures_of_a_window_of_long_ago_or_of_the_future_are_refused(seconds, message):
    """It serves its last figures for ever when it gets no new ones; of a clock that is wrong a minute is forgiven."""
    ended = NOW + timedelta(seconds=seconds)
    with pytest.raises(StrategyError, match=message) if message else nullcontext():
        assert measure(BOTH, ended=ended).nodes
    assert measure(BOTH, ended=min(ended, NOW), maxSampleAge="10m").nodes


def test_a_node_without_figures_is_missing_and_not_idle():
    found = measure(
        {"n1": BUSY, "n2": {"CPU": 3}, "n3": {"CPU": -1, "Memory": 3}, "n4": {"CPU": 1e308, "Memory": 3}},
        count=5,
        min_fresh=0,
    )

    assert found.missing == {
        "n2": "no sample of memory",
        "n3": "cpu is -1",
        "n4": "cpu is 1e+308",
        "n5": "load-watcher does not know it",
    }


def test_pods_come_from_metrics_server_where_there_is_one():
    """More of them than an average of their node is no contradiction: the two are not about the same moment."""
    metrics = Metrics(
        [NodeMetrics("n1", {"cpu": 1, "memory": 1})], [PodMetrics("default", "a", {"cpu": 5000, "memory": 8}, NOW)]
    )
    found = measure(BOTH, {"source": "KubernetesMetrics"}, metrics=metrics, pods=[pod("a", node="n1")])
    without = measure(BOTH, {"source": "KubernetesMetrics"})

    assert found.pods == {("default", "a"): {"cpu": 5000, "memory": 8}}
    assert found.nodes["n1"]["cpu"] == 2000
    assert without.pods is None
    assert without.warnings == ("what pods use is unknown: it was not meant to be read",)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(500, ""), "refuses: HTTP 500"),
        (Reply(404, "No metrics found"), "has nothing at this address .*No metrics found"),
        (Reply(200, "hello"), "is not load-watcher"),
        (Reply(200, {"data": {"NodeMetricsMap": 3}}), "is not load-watcher"),
        *((Reply(200, each), "ended .* ago") for each in ({}, {"data": {}}, {"data": {"NodeMetricsMap": None}})),
        (Reply(200, {"window": {"end": 1e300}}), "is not a time"),
    ],
)
def test_what_is_not_an_answer_is_explained(reply, message):
    """It has no data yet, or something else answers at its address."""
    with pytest.raises(StrategyError, match=message):
        measure({}, reply=reply)


def test_it_is_asked_once():
    with FakeLoadWatcher(BOTH, ended=NOW) as server:
        sources = Sources({"source": "LoadWatcher", "loadWatcher": {"url": server.url + "/"}})
        for _ in range(2):
            sources.measure(cluster(nodes(2), []), source="LoadWatcher")

        assert [each.path for each in server.requests] == ["/watcher"]


def scheduled(server, *others, source="LoadWatcher", metrics=None, count=1):
    given = [{"source": "LoadWatcher", "loadWatcher": {"url": server.url}}] if server else []
    return Sources(*given, *others, metrics=metrics).loads(cluster(nodes(count), []), source)


def test_a_scheduler_is_given_what_load_watcher_says():
    """All figures in their order, by load-watcher's own names; whatever the scheduler asks."""
    with FakeLoadWatcher({"10.0.0.1:9100": BUSY}, ended=NOW - timedelta(minutes=4), operators=("STD", "AVG")) as server:
        found = scheduled(server, source="Prometheus")

    figures = [("CPU", "STD", 50), ("CPU", "AVG", 50), ("Memory", "STD", 25), ("Memory", "AVG", 25)]
    assert found == NodeLoads({"10.0.0.1:9100": [LoadFigure(*each) for each in figures]}, NOW - timedelta(minutes=4))


def test_a_scheduler_is_given_no_figures_of_long_ago():
    server = FakeLoadWatcher({"n1": BUSY}, ended=NOW - timedelta(seconds=301))
    with server, pytest.raises(StrategyError, match="ended 5m1s ago"):
        scheduled(server)


def test_samples_of_metrics_server_become_what_load_watcher_makes_of_them():
    """Shares of the capacity, of any age; for nodes that it knows, whether or not they are ready."""
    old = NodeMetrics("n1", {"cpu": 1000, "memory": 8 * GI}, NOW - timedelta(hours=1))
    metrics = Metrics([old, NodeMetrics("n2", {"memory": 4 * GI}), NodeMetrics("gone", {"cpu": 1})], None)
    found = scheduled(None, {"source": "KubernetesMetrics"}, source=METRICS_SERVER, metrics=metrics, count=3)

    figures = {
        "n1": [LoadFigure("CPU", "Latest", 25), LoadFigure("Memory", "Latest", 50)],
        "n2": [LoadFigure("Memory", "Latest", 25)],
    }
    assert found == NodeLoads(figures, NOW)


@pytest.mark.parametrize(
    ("source", "given", "cure"),
    [
        (METRICS_SERVER, (), "KubernetesMetrics"),
        ("LoadWatcher", ({"source": "KubernetesMetrics"},), "LoadWatcher"),
        ("Prometheus", ({"source": "KubernetesMetrics"},), "LoadWatcher"),
    ],
)
def test_a_source_that_the_scheduler_asks_and_the_policy_lacks_is_named(source, given, cure):
    message = f"the scheduler asks {source}: add `- source: {cure}` to the policy's metricsProviders"
    with pytest.raises(StrategyError, match=re.escape(message)):
        scheduled(None, *given, source=source)
