"""Whole runs that decide on real usage: from metrics-server, a file, Prometheus and load-watcher, and without them."""

import base64
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.fake_servers import FakeLoadWatcher, FakePrometheus, sample
from tests.functional.objects import METRICS, node, node_usage, pod, pod_usage, policy, two_nodes_with
from tests.functional.probing import samples

PROVIDER = {"source": "KubernetesMetrics"}


def low(usage, resource="cpu", **args):
    args = {"thresholds": {resource: 30}, "targetThresholds": {resource: 50}, "metricsUtilization": usage, **args}
    return ("LowNodeUtilization", args)


def by_usage(*strategies, providers=(PROVIDER,)):
    return policy(*strategies, metricsProviders=list(providers))


@pytest.fixture
def busy(server):
    """Three pods that request the same on a busy node, one that is empty; the pod `b` uses most."""
    taken = {"timestamp": (datetime.now(UTC) - timedelta(seconds=100)).isoformat(), "window": "15s"}
    for name, used in (("n1", "2500m"), ("n2", "100m")):
        server.add(node(name))
        server.add(node_usage(name, used, **taken))
    for name, age, used in (("a", 300, "0"), ("b", 200, "2"), ("c", 100, "1m")):
        server.add(pod(name, age=age))
        server.add(pod_usage(name, used))
    return server


def test_metrics_server_decides_and_not_requests(busy, rebalancer, tmp_path):
    """By one list of nodes and one of pods, however many there are; `b` takes the load away, so `c` stays.

    How old the samples are is a metric, with the source's name as its only label.
    """
    file = tmp_path / "rebalancer.prom"
    outcome = rebalancer.run(busy, by_usage(low({"source": "KubernetesMetrics"})), "--metrics-textfile", file)

    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.evicted() == ["default/a", "default/b"]
    assert outcome.report["evictions"][0]["reason"] == "n1 at cpu 62.5 % > 50 %"
    assert [each.path for each in busy.sent("GET", f"/apis/{METRICS}/*")] == [
        f"/apis/{METRICS}/nodes",
        f"/apis/{METRICS}/pods",
    ]
    (age,) = [age for series, age in samples(file.read_text()).items() if "sample_age" in series]
    assert 100 <= age < 3600
    assert f'rebalancer_source_sample_age_seconds{{source="KubernetesMetrics"}} {age}' in file.read_text()


def test_a_snapshot_holds_usage_too(busy, rebalancer):
    """Written while there is a metrics-server, a file decides as the cluster does; one without says how to get it."""
    path = rebalancer.folder / "three.json"
    written = rebalancer.at(busy, "snapshot", "--output", path)
    offline = rebalancer.offline(by_usage(low({"source": "KubernetesMetrics"})), path)

    without = rebalancer.offline(by_usage(low(PROVIDER)), rebalancer.cluster(*two_nodes_with()))

    assert "2 NodeMetrics, 3 PodMetrics" in written.stdout
    assert offline.evicted() == ["default/a", "default/b"]
    assert without.exit_code == 1
    assert "kubectl get nodes.metrics.k8s.io,pods.metrics.k8s.io -A" in without.report["strategies"][0]["error"]


def test_malformed_usage_is_a_warning(busy, rebalancer):
    """A pod whose figures cannot be read stays; so does one without containers, of which nothing is known."""
    busy.add({**pod_usage("a", "lots")})
    busy.add({**pod_usage("c", "1"), "containers": []})
    outcome = rebalancer.run(busy, by_usage(low({"source": "KubernetesMetrics"})))

    assert outcome.evicted() == ["default/b"]
    assert outcome.refused()["a"] == "NoUsage"
    assert any("PodMetrics default/a is malformed" in each for each in outcome.report["warnings"])


def test_a_token_comes_from_a_secret(busy, rebalancer):
    """Read through the API server, under the descheduler's key."""
    where, token = {"namespace": "monitoring", "name": "token"}, base64.b64encode(b"hush").decode()
    busy.add({"kind": "Secret", "apiVersion": "v1", "metadata": where, "data": {"prometheusAuthToken": token}})
    secret = {"secretReference": where}
    with FakePrometheus([sample("n1", 0.9), sample("n2", 0.1)], tls=True) as prometheus:
        provider = {"url": prometheus.url, "caFile": str(prometheus.certificate), "authToken": secret}
        usage = {"source": "Prometheus", "prometheus": {"query": "load"}}
        source = {"source": "Prometheus", "prometheus": provider}
        outcome = rebalancer.run(busy, by_usage(low(usage, "MetricResource"), providers=[source]))

        assert outcome.evicted() == ["default/a"]
        assert [each.headers["authorization"] for each in prometheus.requests] == ["Bearer hush"]


PRESET = Path(__file__).parents[2] / "policies/presets/usage-load-watcher.yaml"
PRESET_URL = "http://load-watcher.loadwatcher:2020"
PERCENTS = {"n1": {"CPU": 90, "Memory": 20}, "n2": {"CPU": 10, "Memory": 20}}
#: A balancing strategy that needs no usage: of three alike on one of two nodes it evicts one, the oldest.
OTHER = ("RemoveDuplicates", {})


def by_preset(rebalancer, three, url, *, without=""):
    """Run the preset as shipped, but for the address and a part that is left out."""
    text = PRESET.read_text()
    assert PRESET_URL in text
    assert without in text
    file = rebalancer.folder / "preset.yaml"
    file.write_text(text.replace(PRESET_URL, url).replace(without, ""))
    return rebalancer.at(three, "run", "--yes", "--policy", file, "--output", "json")


def test_the_preset_moves_what_brings_a_node_within_target(three, rebalancer):
    """Nodes by load-watcher, pods by metrics-server: `b` alone uses what the node has above its target."""
    for each in (node_usage("n1", "1"), node_usage("n2", "1")):  # not what the policy goes by
        three.add(each)
    for name, cpu in (("a", "1m"), ("b", "2"), ("c", "1m")):
        three.add(pod_usage(name, cpu))
    with FakeLoadWatcher(PERCENTS, datetime.now(UTC)) as source:
        outcome = by_preset(rebalancer, three, source.url)

    assert outcome.exit_code == 0, outcome.stderr
    assert three.evicted == ["default/b"]
    assert outcome.report["evictions"][0]["reason"].startswith("n1 at cpu 90 % > 65 %: 25 points over; relieves 25")
    assert [each.path for each in source.requests] == ["/watcher"]


@pytest.mark.parametrize(
    ("without", "warned"), [("", "what pods use is unknown"), ("  - source: KubernetesMetrics\n", "")]
)
def test_the_preset_without_metrics_server(three, rebalancer, without, warned):
    """One pod leaves the busy node, the oldest; that a source which is set up does not answer is a warning."""
    with FakeLoadWatcher(PERCENTS, datetime.now(UTC)) as source:
        outcome = by_preset(rebalancer, three, source.url, without=without)

    assert outcome.exit_code == 0, outcome.stderr
    assert three.evicted == ["default/a"]
    assert [warned in each for each in outcome.report["warnings"]] == ([True] if warned else [])
    assert len(three.sent("GET", f"/apis/{METRICS}/*")) == (1 if warned else 0)


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
def test_with_metrics_server_in_trouble_the_rest_still_runs(three, rebalancer, status, body, error):
    """Also if the API server takes the token, but not for metrics; the strategy says why, and evicts nothing."""
    three.fail("GET", f"/apis/{METRICS}/*", status=status, message="no, not you", body=body)

    outcome = rebalancer.run(three, by_usage(low(PROVIDER), OTHER))

    measured, other = outcome.report["strategies"]
    assert (outcome.exit_code, measured["evicted"], other["evicted"], other["error"]) == (0, 0, 1, None)
    assert re.match(error, measured["error"])
    assert "Traceback" not in outcome.stderr
