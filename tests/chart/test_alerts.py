"""The alerts fire when they should, and not before: played by promtool."""

import json
import re

import yaml

from tests.chart.helm import CHART, needed, one, template
from tests.commands import run
from tests.real_prometheus import needed as prometheus_needed

ALERTS = CHART / "rules" / "alerts.yaml"
RUNS = CHART / "rules" / "runs.yaml"
HERE = 'namespace="kube-system", job="rebalancer"'
INTERVAL = {f"rebalancer_interval_seconds{{{HERE}}}": "300x120"}


def constant(value):
    return f"{value}x120"


def series(**by_name):
    return {f"rebalancer_{name}{{{HERE}}}": values for name, values in by_name.items()}


def evictions(result, values):
    return {f'rebalancer_evictions_total{{{HERE}, result="{result}", dry_run="false"}}': values}


def source(name, values):
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

#: What kube-state-metrics says of a CronJob that runs every ten minutes, and of one of its Jobs.
CRON_JOB = 'namespace="kube-system", cronjob="rebalancer"'
JOB = 'namespace="kube-system", job_name="rebalancer-29400000"'


def cron_job(**times):
    times = {"created": 0, "status_last_schedule_time": 3000, "next_schedule_time": 3600, **times}
    return {f"kube_cronjob_{name}{{{CRON_JOB}}}": constant(time) for name, time in times.items()}


def last_good(time):
    return cron_job(status_last_successful_time=time)


def failed_job(created, job=JOB):
    return {
        f'kube_job_status_failed{{{job}, reason="DeadlineExceeded"}}': constant(1),
        f'kube_job_status_failed{{{job}, reason="BackoffLimitExceeded"}}': constant(0),
        f"kube_job_created{{{job}}}": constant(created),
    }


OTHER_JOB = JOB.replace("rebalancer-2", "other-2")
#: Alert, whether it fires after an hour, and the series.
RUN_CASES = {
    "failed since the last good run": ("RebalancerRunFailed", True, last_good(2500) | failed_job(3000)),
    "failed, and none was good": ("RebalancerRunFailed", True, cron_job() | failed_job(3000)),
    "failed before the last good run": ("RebalancerRunFailed", False, last_good(3100) | failed_job(2400)),
    "another CronJob's Job failed": ("RebalancerRunFailed", False, cron_job() | failed_job(3000, OTHER_JOB)),
    "no good run for three schedules": ("RebalancerNoGoodRun", True, last_good(1000)),
    "never a good run": ("RebalancerNoGoodRun", True, cron_job()),
    "a good run two schedules ago": ("RebalancerNoGoodRun", False, last_good(2400)),
    "once a day, and yesterday's was good": ("RebalancerNoGoodRun", False, cron_job(next_schedule_time=3000 + 86400)),
    "suspended": ("RebalancerNoGoodRun", False, cron_job(spec_suspend=1)),
}  # fmt: skip


def played(name, alert, given, fires):
    """A test of promtool: after an hour, does the alert fire once, or not at all?"""
    asked = {
        "expr": f'count(ALERTS{{alertname="{alert}", alertstate="firing"}})',
        "eval_time": "60m",
        "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
    }
    series = [{"series": name, "values": values} for name, values in given.items()]
    return {"name": name, "interval": "1m", "input_series": series, "promql_expr_test": [asked]}


def test_every_alert_is_played():
    """None is shipped that was not seen to fire."""
    rules = [rule for file in (ALERTS, RUNS) for rule in yaml.safe_load(file.read_text())["groups"][0]["rules"]]

    assert [rule["alert"] for rule in rules] == [*CASES, *dict.fromkeys(alert for alert, *_ in RUN_CASES.values())]
    assert all(rule["annotations"]["summary"] and rule["annotations"]["description"] for rule in rules)


@prometheus_needed
def test_alerts_fire_when_they_should_and_not_before(tmp_path):
    """Those of CronJobs by kube-state-metrics: such runs are gone before they could be scraped."""
    tests = [
        played(f"{alert}, fires: {fires}", alert, given, fires)
        for alert, both in CASES.items()
        for given, fires in zip(both, (True, False), strict=True)
    ]
    tests += [played(case, alert, given, fires) for case, (alert, fires, given) in RUN_CASES.items()]
    file = tmp_path / "test.yaml"
    rules = {"rule_files": [str(ALERTS), str(RUNS)], "evaluation_interval": "1m"}
    file.write_text(yaml.safe_dump({**rules, "tests": tests}))

    assert run("promtool", "test", "rules", file).stdout.split()[-1] == "SUCCESS"


@needed
def test_alerts_are_rendered_as_they_are():
    """Braces and all: they are Prometheus' and not helm's.  Those of a CronJob come with a CronJob, under its name."""
    loops, runs = yaml.safe_load(ALERTS.read_text()), yaml.safe_load(RUNS.read_text())
    rule, ours, other = (
        one(template(f"{{prometheusRule: {{enabled: true}}, {values}}}"), "PrometheusRule")["spec"]["groups"]
        for values in ("kind: Deployment", "kind: CronJob", "fullnameOverride: evener, namespaceOverride: other")
    )

    assert rule == loops["groups"]
    assert ours == loops["groups"] + runs["groups"]
    assert set(re.findall(r'(?:namespace|cronjob|job_name)=~?"(.*?)"', str(other[1]))) == {
        "other",
        "evener",
        "evener-[0-9]+",
    }


@needed
def test_the_dashboard_is_rendered_as_it_is():
    """JSON that Grafana loads, each panel with a query."""
    shown = one(template("dashboard: {enabled: true}"), "ConfigMap", "-dashboard")["data"]["rebalancer.json"]

    panels = json.loads(shown)["panels"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(re.search("rebalancer|descheduler", query) for query in queries)
