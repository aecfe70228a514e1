"""Whole runs against the servers that usage comes from: as they should be, and in every kind of trouble."""

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.fake_api_server import LONGEST_STALL_SECONDS
from tests.fake_http import Reply
from tests.fake_servers import FakeLoadWatcher, FakeServer
from tests.functional.objects import old_pods, policy, two_nodes_with

METRICS = "metrics.k8s.io/v1beta1"
PRESET = Path(__file__).parents[2] / "policies/presets/usage-load-watcher.yaml"
PRESET_URL = "http://load-watcher.loadwatcher:2020"

#: Under which key a provider says where it is.
PROVIDERS = {"Prometheus": "prometheus", "LoadWatcher": "loadWatcher", "KubernetesMetrics": None}
#: How Prometheus is asked, in the form that has resources.
BUSY = {"nodes": {"cpu": {"query": "busy", "unit": "ratio", "base": "capacity"}}}
USAGES = {"Prometheus": {"prometheus": BUSY}}

#: A balancing strategy that needs no usage: of three alike on one of two nodes it evicts one.
OTHER = ("RemoveDuplicates", {})


def pod_usage(name, cpu):
    containers = [{"name": "main", "usage": {"cpu": cpu, "memory": "1Mi"}}]
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": METRICS, "kind": "PodMetrics", "metadata": metadata, "containers": containers}


def node_usage(name, cpu):
    usage = {"cpu": cpu, "memory": "1Gi"}
    return {"apiVersion": METRICS, "kind": "NodeMetrics", "metadata": {"name": name}, "usage": usage}


@pytest.fixture
def cluster(server):
    """Three pods alike on one of two nodes, `a` the oldest; nobody tells what they use."""
    for each in two_nodes_with(*old_pods("a", "b", "c")):
        server.add(each)
    return server


def load_watcher(*, busy=90, ended=timedelta(0)):
    """One whose window ended so long ago."""
    percents = {"n1": {"CPU": busy, "Memory": 20}, "n2": {"CPU": 10, "Memory": 20}}
    return FakeLoadWatcher(percents, datetime.now(UTC) - ended)


def by_preset(rebalancer, cluster, url, *, without=""):
    """Run the preset as shipped, but for the address and a part that is left out."""
    text = PRESET.read_text()
    assert PRESET_URL in text
    assert without in text
    file = rebalancer.folder / "preset.yaml"
    file.write_text(text.replace(PRESET_URL, url).replace(without, ""))
    kubeconfig = cluster.kubeconfig(rebalancer.folder)
    return rebalancer("run", "--yes", "--policy", file, "--kubeconfig", kubeconfig, "--output", "json")


def test_the_preset_moves_what_brings_a_node_within_target(cluster, rebalancer):
    """Nodes by load-watcher, pods by metrics-server: `b` alone uses what the node has above its target."""
    for each in (node_usage("n1", "1"), node_usage("n2", "1")):  # not what the policy goes by
        cluster.add(each)
    for name, cpu in (("a", "1m"), ("b", "2"), ("c", "1m")):
        cluster.add(pod_usage(name, cpu))
    with load_watcher() as source:
        outcome = by_preset(rebalancer, cluster, source.url)

    assert outcome.exit_code == 0, outcome.stderr
    assert cluster.evicted == ["default/b"]
    assert outcome.report["evictions"][0]["reason"].startswith("n1 at cpu 90 % > 65 %: 25 points over; relieves 25")
    assert [each.path for each in source.requests] == ["/watcher"]


@pytest.mark.parametrize(
    ("without", "warned"), [("", "what pods use is unknown"), ("  - source: KubernetesMetrics\n", "")]
)
def test_the_preset_without_metrics_server(cluster, rebalancer, without, warned):
    """One pod leaves the busy node, the oldest; that a source which is set up does not answer is a warning."""
    with load_watcher() as source:
        outcome = by_preset(rebalancer, cluster, source.url, without=without)

    assert outcome.exit_code == 0, outcome.stderr
    assert cluster.evicted == ["default/a"]
    assert [warned in each for each in outcome.report["warnings"]] == ([True] if warned else [])
    assert len(cluster.sent("GET", f"/apis/{METRICS}/*")) == (1 if warned else 0)


def test_the_preset_leaves_a_balanced_cluster_alone(cluster, rebalancer):
    """No node is above its targets."""
    with load_watcher(busy=60) as source:
        outcome = by_preset(rebalancer, cluster, source.url)

    assert (outcome.exit_code, cluster.evicted) == (0, [])


def test_the_preset_does_not_go_by_an_old_window(cluster, rebalancer):
    """load-watcher serves its last figures when it gets none any more."""
    with load_watcher(ended=timedelta(hours=1)) as source:
        outcome = by_preset(rebalancer, cluster, source.url)

    assert (outcome.exit_code, cluster.evicted) == (1, [])
    assert "the window of load-watcher ended 1h" in outcome.report["strategies"][0]["error"]


# Trouble


class Source(FakeServer):
    """Answers each request alike."""

    def __init__(self, reply: Callable[[], Reply]) -> None:
        super().__init__()
        self.answers = lambda _: reply()


@contextmanager
def down() -> Iterator[str]:
    """Nobody listens, and nobody else can."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def answering(status, body):
    """The trouble of one answer, after which nobody asks again."""

    @contextmanager
    def trouble() -> Iterator[str]:
        with Source(lambda: Reply(status, body)) as source:
            yield source.url
        assert len(source.requests) == 1

    return trouble


@contextmanager
def slow() -> Iterator[str]:
    """No answer until it is too late."""
    late = threading.Event()
    with Source(lambda: Reply(200, {}) if late.wait(LONGEST_STALL_SECONDS) else Reply(500, "")) as source:
        try:
            yield source.url
        finally:
            late.set()


def after_trouble(rebalancer, cluster, source, **provider):
    """Run a strategy that goes by a source before one that does not; return the error of the first."""
    key = PROVIDERS[source]
    usage = {"source": source, **USAGES.get(source, {})}
    low = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}, "metricsUtilization": usage}
    providers = [{"source": source, **({key: provider} if key else {})}]
    both = policy(("LowNodeUtilization", low), OTHER, balance=True, metricsProviders=providers)
    outcome = rebalancer.run(cluster, both)

    measured, other = outcome.report["strategies"]
    assert (outcome.exit_code, measured["evicted"], other["evicted"], other["error"]) == (0, 0, 1, None)
    assert len(cluster.evicted) == 1
    assert "Traceback" not in outcome.stderr
    return measured["error"]


@pytest.mark.parametrize(("source", "name"), [("Prometheus", "Prometheus"), ("LoadWatcher", "load-watcher")])
@pytest.mark.parametrize(
    ("trouble", "timeout", "message"),
    [
        pytest.param(down, "30s", "{name} at {url} does not answer: Connection refused", id="down"),
        pytest.param(slow, "200ms", "{name} at {url} did not answer within 0.2 s (its timeout in", id="slow"),
        pytest.param(answering(401, "who?"), "30s", "{name} at {url} does not accept the credentials", id="stranger"),
        pytest.param(answering(200, {"status": "success", "data": 3}), "30s", "what answers at {url}", id="garbage"),
    ],
)
def test_with_a_source_in_trouble_the_rest_still_runs(cluster, rebalancer, source, name, trouble, timeout, message):
    """The strategy says who it asked and what was wrong, and evicts nothing; the one after it does its work."""
    with trouble() as url:
        error = after_trouble(rebalancer, cluster, source, url=url, timeout=timeout)

    assert error.startswith(message.format(name=name, url=url))


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (401, None, "metrics-server cannot be asked: .*no, not you"),
        (403, None, "metrics-server cannot be asked: .*no, not you"),
        (404, None, "usage is unknown: there is no metrics-server"),
        (200, "<html>", "metrics-server cannot be asked: .*JSON"),
        (200, {"items": 3}, "metrics-server cannot be asked: "),
    ],
)
def test_with_metrics_server_in_trouble_the_rest_still_runs(cluster, rebalancer, status, body, error):
    """Also if the API server takes the token, but not for metrics."""
    cluster.fail("GET", f"/apis/{METRICS}/*", status=status, message="no, not you", body=body)

    assert re.match(error, after_trouble(rebalancer, cluster, "KubernetesMetrics"))
