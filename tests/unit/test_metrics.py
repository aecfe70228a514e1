"""What is counted."""

import pytest

from rebalancer.engine.ledger import Entry, Ledger
from rebalancer.eviction.causes import Code, cause
from rebalancer.eviction.verdict import GRANTED, Failed, Granted, Unknown, refused
from rebalancer.telemetry import metrics as module
from rebalancer.telemetry.metrics import ProcessMetrics
from tests.functional.probing import samples
from tests.make import pod

CONSIDERED = 'rebalancer_pods_considered_total{dry_run="false",profile="profile",strategy="Strategy"}'


def entry(verdict, name="p", namespace="ns", node="n"):
    return Entry(
        "profile", "Strategy", pod(name, node, namespace=namespace), cause(Code.CUSTOM, message="because"), verdict
    )


def found(metrics):
    return samples(metrics.exposition().decode())


def counted(*verdicts):
    metrics = ProcessMetrics(dry_run=False)
    ledger = Ledger(observe=metrics.observe)
    for verdict in verdicts:
        ledger.record(entry(verdict))
    ledger.close_run("profile", "Strategy", 0.1, None)
    metrics.ledger_closed(ledger)
    return found(metrics)


def evicted(result, namespace="ns", node="n"):
    labels = f'namespace="{namespace}",node="{node}",profile="profile",result="{result}",strategy="Strategy"'
    return f"descheduler_pods_evicted_total{{{labels}}}"


@pytest.mark.parametrize(
    ("verdict", "result"),
    [
        (GRANTED, "success"),
        (Granted(background=True), "background"),
        (Granted(restarted="web"), "restarted"),
        (Failed("no answer"), "error"),
        (refused(Code("PDB")), "error"),
        (refused(Code("TotalLimit")), "maximum number of evicted pods per a descheduling cycle reached"),
        (refused(Code("NodeLimit")), "maximum number of evicted pods per node reached"),
        (refused(Code("NamespaceLimit")), "maximum number of evicted pods per namespace reached"),
    ],
)
def test_results_in_the_words_of_the_descheduler(verdict, result):
    """Dashboards select by them; old name and new name have the same value."""
    values = counted(verdict)

    assert values[evicted(result)] == 1
    assert values[evicted(result).replace("_total", "")] == 1


@pytest.mark.parametrize(("result", "is_good"), [("succeeded", True), ("skipped", True), ("failed", False)])
def test_a_cycle_that_had_nothing_to_do_is_a_good_one(result, is_good):
    """A loop that moves pods at night raises no alert by day."""
    metrics = ProcessMetrics(dry_run=False)

    metrics.cycle_ended(result, 0.1)

    assert ('rebalancer_last_successful_cycle_timestamp_seconds{dry_run="false"}' in found(metrics)) == is_good


def test_a_new_policy_leaves_no_figures_of_sources_that_nobody_asks_any_more():
    """Nor a breaker that nobody looks at: their alerts would never end."""
    metrics = ProcessMetrics(dry_run=False)
    for each in (metrics.stale_nodes, metrics.ages):
        each.labels("KubernetesMetrics").set(3)
    metrics.breaker.set(1)

    metrics.policy_read(valid=False)
    before = found(metrics)
    metrics.policy_read(valid=True)

    of_source = 'rebalancer_source_stale_nodes{source="KubernetesMetrics"}'
    assert (before[of_source], before["rebalancer_breaker_open"]) == (3, 1)
    assert [name for name in found(metrics) if "source=" in name] == []
    assert found(metrics)["rebalancer_breaker_open"] == 0


def test_a_protection_is_a_refusal_and_no_eviction():
    """Counted by its cause, each pod once however often it was asked for."""
    values = counted(*[refused(Code("DaemonSetPods"))] * 3)

    labels = 'by="DaemonSetPods",dry_run="false",profile="profile",strategy="Strategy"'
    assert values[f"rebalancer_pods_refused_total{{{labels}}}"] == 1
    assert values[CONSIDERED] == 1
    assert not [series for series in values if series.startswith("descheduler_pods_evicted")]


def test_an_eviction_without_an_answer_is_unknown():
    """And a pod that was asked for."""
    values, labels = counted(Unknown("lost")), 'dry_run="false",profile="profile",result="unknown",strategy="Strategy"'
    assert values[f"rebalancer_evictions_total{{{labels}}}"] == 1
    assert values[CONSIDERED] == 1


def test_series_by_node_and_namespace_are_bounded(monkeypatch):
    """Nodes come and go for months; what is beyond is still counted."""
    monkeypatch.setattr(module, "MOST_SERIES", 3)
    metrics = ProcessMetrics(dry_run=False)
    for number in range(10):
        metrics.observe(entry(GRANTED, node=f"n{number}"))
    metrics.observe(entry(GRANTED, node="n0"))

    values = found(metrics)

    series = [each for each in values if each.startswith("descheduler_pods_evicted_total")]
    assert len(series) == 4
    assert values[evicted("success", "other", "other")] == 7
    assert values[evicted("success", node="n0")] == 2


def test_nodes_as_strategies_saw_them():
    """By state in the last cycle; by utilization before and after in all of them."""
    metrics = ProcessMetrics(dry_run=False)

    def report(*states):
        nodes = [{"name": "n", "state": each, "before": {"cpu": 85}, "after": {"cpu": 55}} for each in states]
        return {"strategies": [{"profile": "p", "strategy": "s", "nodes": nodes}, {"profile": "p", "strategy": "t"}]}

    metrics.report_made(report("over", "over", "under"))
    metrics.report_made(report("under"))

    values = found(metrics)
    assert values['rebalancer_nodes{profile="p",state="under",strategy="s"}'] == 1
    assert 'rebalancer_nodes{profile="p",state="over",strategy="s"}' not in values
    assert values['rebalancer_node_utilization_percent_sum{moment="before",resource="cpu"}'] == 4 * 85
    assert values['rebalancer_node_utilization_percent_sum{moment="after",resource="cpu"}'] == 4 * 55


def test_whose_metrics_are_served():
    """The descheduler's, our own, and those of a process in Python; a dashboard of a Go process finds nothing."""
    families = {
        line.split()[2] for line in ProcessMetrics(dry_run=False).exposition().decode().splitlines() if "# TYPE" in line
    }

    assert {name.split("_")[0] for name in families} == {"descheduler", "rebalancer", "process", "python"}
