"""How old samples of real usage are, as whole runs tell it to Prometheus."""

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from tests.fake_http import Reply
from tests.fake_servers import FakeLoadWatcher, FakePrometheus, sample
from tests.functional.objects import node, policy
from tests.functional.probing import samples

METRICS = "metrics.k8s.io/v1beta1"
AGE = timedelta(seconds=100)
#: More than any run takes, and less than times in a wrong unit are apart.
LONGEST = timedelta(hours=1)
QUERY = {"query": "busy", "unit": "ratio", "base": "capacity", "node": {"label": "instance"}}
USAGES = {"Prometheus": {"maxSampleAge": "10m", "prometheus": {"nodes": {"cpu": QUERY}}}}


@contextmanager
def metrics_server(server):
    """Samples that were taken so long ago, beside the other objects."""
    taken = (datetime.now(UTC) - AGE).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    for name in ("n1", "n2"):
        usage = {"timestamp": taken, "window": "15s", "usage": {"cpu": "1", "memory": "1Gi"}}
        server.add({"apiVersion": METRICS, "kind": "NodeMetrics", "metadata": {"name": name}, **usage})
    server.add({"apiVersion": METRICS, "kind": "PodMetrics", "metadata": {"name": "p", "namespace": "default"}})
    yield {}


@contextmanager
def prometheus(_):
    def answer(request):
        value = (datetime.now(UTC) - AGE).timestamp() if "timestamp" in request.query["query"] else 0.5
        result = [sample(name, value) for name in ("n1", "n2")]
        return Reply(200, {"status": "success", "data": {"resultType": "vector", "result": result}})

    with FakePrometheus() as running:
        running.answers = answer
        yield {"prometheus": {"url": running.url}}


@contextmanager
def load_watcher(_):
    half = {"CPU": 50, "Memory": 50}
    with FakeLoadWatcher({"n1": half, "n2": half}, datetime.now(UTC) - AGE) as running:
        yield {"loadWatcher": {"url": running.url}}


SOURCES = {"KubernetesMetrics": metrics_server, "Prometheus": prometheus, "LoadWatcher": load_watcher}


@pytest.mark.parametrize("source", SOURCES)
def test_each_source_has_its_age_among_the_metrics(server, rebalancer, tmp_path, source):
    """In seconds, with the source's name as the only label."""
    for name in ("n1", "n2"):
        server.add(node(name))
    usage = {"source": source, **USAGES.get(source, {})}
    args = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}, "metricsUtilization": usage}
    file = tmp_path / "rebalancer.prom"
    with SOURCES[source](server) as where:
        plan = policy(("LowNodeUtilization", args), balance=True, metricsProviders=[{"source": source, **where}])
        outcome = rebalancer.run(server, plan, "--metrics-textfile", file)

    assert outcome.exit_code == 0, outcome.stderr
    ages = {series: age for series, age in samples(file.read_text()).items() if "sample_age" in series}
    assert list(ages) == [f'rebalancer_source_sample_age_seconds{{source="{source}"}}']
    assert AGE.total_seconds() <= min(ages.values()) < LONGEST.total_seconds()
