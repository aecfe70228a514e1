"""Whole runs against the servers that usage comes from: as they should be, and without metrics-server."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.fake_servers import FakeLoadWatcher
from tests.functional.objects import METRICS, node_usage, old_pods, pod_usage, policy, two_nodes_with

PRESET = Path(__file__).parents[2] / "policies/presets/usage-load-watcher.yaml"
PRESET_URL = "http://load-watcher.loadwatcher:2020"
PERCENTS = {"n1": {"CPU": 90, "Memory": 20}, "n2": {"CPU": 10, "Memory": 20}}
#: A balancing strategy that needs no usage: of three alike on one of two nodes it evicts one.
OTHER = ("RemoveDuplicates", {})


@pytest.fixture
def cluster(server):
    """Three pods alike on one of two nodes, `a` the oldest; nobody tells what they use."""
    server.add(*two_nodes_with(*old_pods("a", "b", "c")))
    return server


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
    with FakeLoadWatcher(PERCENTS, datetime.now(UTC)) as source:
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
    with FakeLoadWatcher(PERCENTS, datetime.now(UTC)) as source:
        outcome = by_preset(rebalancer, cluster, source.url, without=without)

    assert outcome.exit_code == 0, outcome.stderr
    assert cluster.evicted == ["default/a"]
    assert [warned in each for each in outcome.report["warnings"]] == ([True] if warned else [])
    assert len(cluster.sent("GET", f"/apis/{METRICS}/*")) == (1 if warned else 0)


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
    """Also if the API server takes the token, but not for metrics; the strategy says why, and evicts nothing."""
    cluster.fail("GET", f"/apis/{METRICS}/*", status=status, message="no, not you", body=body)
    usage = {"source": "KubernetesMetrics"}
    low = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}, "metricsUtilization": usage}

    outcome = rebalancer.run(
        cluster, policy(("LowNodeUtilization", low), OTHER, balance=True, metricsProviders=[usage])
    )

    measured, other = outcome.report["strategies"]
    assert (outcome.exit_code, measured["evicted"], other["evicted"], other["error"]) == (0, 0, 1, None)
    assert re.match(error, measured["error"])
    assert "Traceback" not in outcome.stderr
