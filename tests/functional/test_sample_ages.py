"""How old samples of real usage are, as a whole run tells it to Prometheus."""

from datetime import UTC, datetime, timedelta

from tests.functional.objects import node, node_usage, pod_usage, policy
from tests.functional.probing import samples

AGE = timedelta(seconds=100)
#: More than any run takes, and less than times in a wrong unit are apart.
LONGEST = timedelta(hours=1)


def test_a_source_has_its_age_among_the_metrics(server, rebalancer, tmp_path):
    """In seconds, with the source's name as the only label."""
    taken = (datetime.now(UTC) - AGE).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    for name in ("n1", "n2"):
        server.add(node(name))
        server.add(node_usage(name, "1", timestamp=taken, window="15s"))
    server.add(pod_usage("p", "1"))
    measured = {"metricsUtilization": {"source": "KubernetesMetrics"}}
    args = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}, **measured}
    file = tmp_path / "rebalancer.prom"
    providers = [{"source": "KubernetesMetrics"}]
    plan = policy(("LowNodeUtilization", args), balance=True, metricsProviders=providers)
    outcome = rebalancer.run(server, plan, "--metrics-textfile", file)

    assert outcome.exit_code == 0, outcome.stderr
    ages = {series: age for series, age in samples(file.read_text()).items() if "sample_age" in series}
    assert list(ages) == ['rebalancer_source_sample_age_seconds{source="KubernetesMetrics"}']
    assert AGE.total_seconds() <= min(ages.values()) < LONGEST.total_seconds()
