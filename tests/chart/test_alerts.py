"""The alerts fire when they should, and not before: played by promtool."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.chart.helm import CHART, Object, needed, one, template
from tests.real_prometheus import needed as prometheus_needed

ALERTS = CHART / "rules" / "alerts.yaml"
HERE = 'namespace="kube-system", job="rebalancer"'
INTERVAL = {f"rebalancer_interval_seconds{{{HERE}}}": "300x120"}


def constant(value: int) -> str:
    return f"{value}x120"


def series(**by_name: str) -> dict[str, str]:
    return {f"rebalancer_{name}{{{HERE}}}": values for name, values in by_name.items()}


def evictions(result: str, values: str) -> dict[str, str]:
    return {f'rebalancer_evictions_total{{{HERE}, result="{result}", dry_run="false"}}': values}


def source(name: str, values: str) -> dict[str, str]:
    return {f'rebalancer_{name}{{{HERE}, source="KubernetesMetrics"}}': values}


#: Alert, series by the minute in which it fires after an hour, and series in which it does not.
CASES = {
    "RebalancerNoGoodCycle": (
        INTERVAL | series(last_successful_cycle_timestamp_seconds=constant(0)),
        INTERVAL | series(last_successful_cycle_timestamp_seconds="0+300x24"),
    ),
    "RebalancerNeverWorked": (
        INTERVAL,
        INTERVAL | series(last_successful_cycle_timestamp_seconds=constant(0)),
    ),
    "RebalancerEvictionsFail": (
        evictions("failed", "0+3x120") | evictions("granted", "0+1x120"),
        evictions("failed", "0+1x120") | evictions("granted", "0+3x120"),
    ),
    "RebalancerBreakerOpen": (series(breaker_open=constant(1)), series(breaker_open=constant(0))),
    "RebalancerSourceFails": (source("source_errors_total", "0+1x120"), source("source_errors_total", constant(7))),
    "RebalancerSourceStale": (source("source_stale_nodes", constant(2)), source("source_stale_nodes", constant(0))),
    "RebalancerSamplesOld": (
        source("source_sample_age_seconds", constant(901)),
        source("source_sample_age_seconds", constant(900)),
    ),
    "RebalancerPolicyInvalid": (series(policy_valid=constant(0)), series(policy_valid=constant(1))),
}


def played(folder: Path, alert: str, given: dict[str, str], *, fires: bool) -> subprocess.CompletedProcess[str]:
    """Let promtool look at the alert after an hour: does it fire, once?"""
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in given.items()],
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{alert}", alertstate="firing"}})',
                "eval_time": "60m",
                "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
            }
        ],
    }
    path = folder / "test.yaml"
    path.write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": [test]}))
    command = ["promtool", "test", "rules", str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_every_alert_is_played() -> None:
    """None is shipped that was not seen to fire."""
    rules = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]

    assert [rule["alert"] for rule in rules] == list(CASES)
    assert all(rule["annotations"]["summary"] and rule["annotations"]["description"] for rule in rules)


@prometheus_needed
@pytest.mark.parametrize("alert", CASES)
def test_alert_fires_when_it_should(tmp_path: Path, alert: str) -> None:
    """And only then."""
    bad, good = CASES[alert]

    fired, silent = (played(tmp_path, alert, given, fires=given is bad) for given in (bad, good))

    assert fired.returncode == 0, fired.stdout + fired.stderr
    assert silent.returncode == 0, silent.stdout + silent.stderr


@needed
def test_alerts_are_rendered_as_they_are() -> None:
    """Braces and all: they are Prometheus' and not helm's."""
    rule: Object = one(template("prometheusRule: {enabled: true}"), "PrometheusRule")

    assert rule["spec"] == yaml.safe_load(ALERTS.read_text())


@needed
def test_the_dashboard_is_rendered_as_it_is() -> None:
    """JSON that Grafana loads, each panel with a query."""
    shown = one(template("dashboard: {enabled: true}"), "ConfigMap", "-dashboard")["data"]["rebalancer.json"]

    panels = json.loads(shown)["panels"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(re.search("rebalancer|descheduler", query) for query in queries)
