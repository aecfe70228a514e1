"""What is counted, for Prometheus: the descheduler's metrics under their names and labels, and our own.

docs/running.md has the table of all of them; a test compares it with what is served.  Labels take their values from
the policy (profile, strategy), from closed lists (result, by, stage, verb, code, state) and, in the descheduler's own
metric, from the cluster (namespace, node): there `MOST_SERIES` bounds them.
"""

import platform
import time
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any

import prometheus_client as prometheus
from prometheus_client.core import Metric
from prometheus_client.registry import Collector, CollectorRegistry

from rebalancer import __version__
from rebalancer.engine.ledger import Entry, Ledger
from rebalancer.eviction.verdict import Granted, Refused, Unknown, Verdict

#: The most series of one metric whose labels come from the cluster; further ones are counted under `OTHER`.
MOST_SERIES = 5000
OTHER = "other"

#: The version of the descheduler whose metrics these are.
_DESCHEDULER = "v0.36.0"

_CYCLE_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500)
_STRATEGY_BUCKETS = tuple(bucket for bucket in _CYCLE_BUCKETS if bucket <= 100)  # noqa: PLR2004  the descheduler's
_PERCENT_BUCKETS = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 125)
_RUN = ("profile", "strategy")
_EVICTED_LABELS = ("result", "strategy", "profile", "namespace", "node")
_LIMITS = {
    "TotalLimit": "maximum number of evicted pods per a descheduling cycle reached",
    "NodeLimit": "maximum number of evicted pods per node reached",
    "NamespaceLimit": "maximum number of evicted pods per namespace reached",
}
#: Refusals by the API server, which the descheduler counts as errors.
_ERRORS = frozenset({"PDB", "Webhook", "Gone"})


class ProcessMetrics:
    """All metrics of a process; where it only plans, a label says so, and the descheduler's metric counts nothing."""

    def __init__(self, *, dry_run: bool) -> None:
        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]  # the package types its classes only
        self.registry = CollectorRegistry()
        self._dry_run = str(dry_run).lower()
        for collector in (prometheus.ProcessCollector, prometheus.PlatformCollector, prometheus.GCCollector):
            collector(registry=self.registry)
        self._evicted_series: set[tuple[str, ...]] = set()
        self._add_descheduler_metrics()
        self._add_our_metrics()

    def exposition(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return prometheus.generate_latest(self.registry)

    def observe(self, entry: Entry) -> None:
        """Count an eviction as it happens; refusals are counted at the end of the cycle, each pod once."""
        if isinstance(entry.verdict, Refused):
            return
        result = "granted" if entry.verdict.granted else "unknown" if isinstance(entry.verdict, Unknown) else "failed"
        self._evictions.labels(entry.profile, entry.strategy, result, self._dry_run).inc()
        self._count_evicted(entry, _result(entry.verdict))

    def cycle_ended(self, result: str, seconds: float) -> None:
        """Count a cycle: succeeded, failed or skipped."""
        self._cycles.labels(result, self._dry_run).inc()
        for histogram in self._cycle_durations:
            histogram.observe(seconds)
        if result != "failed":  # also outside the windows, or in a pause: no alert is due
            self._last_good.labels(self._dry_run).set(time.time())

    def ledger_closed(self, ledger: Ledger) -> None:
        """Count what a cycle refused, and how long its strategies took."""
        for entry in ledger.refusals:
            assert isinstance(entry.verdict, Refused)
            by = entry.verdict.by
            self._refused.labels(entry.profile, entry.strategy, by, self._dry_run).inc()
            if by in _LIMITS or by in _ERRORS:
                self._count_evicted(entry, _LIMITS.get(by, "error"))
        for entry in (*ledger.evictions, *ledger.unknown, *ledger.refusals, *ledger.failures):
            self._considered.labels(entry.profile, entry.strategy, self._dry_run).inc()
        for run in ledger.runs:
            for histogram in self._strategy_durations:
                histogram.labels(run.strategy, run.profile).observe(run.seconds)

    def report_made(self, report: Mapping[str, Any]) -> None:
        """Record states and utilization of nodes, as the strategies that weigh nodes saw them."""
        self._nodes.clear()
        for run in report["strategies"]:
            nodes = run.get("nodes") or ()
            states = [str(node["state"]) for node in nodes]
            for state in set(states):
                self._nodes.labels(run["profile"], run["strategy"], state).set(states.count(state))
            for node, moment in product(nodes, ("before", "after")):
                for resource, percent in (node.get(moment) or {}).items():
                    self._utilization.labels(resource, moment).observe(percent)

    def marked(self, nodes_by_rule: Mapping[str, int]) -> None:
        """Record how many nodes each marking rule marks."""
        self._marked.clear()
        for rule, nodes in nodes_by_rule.items():
            self._marked.labels(rule).set(nodes)

    def policy_read(self, *, valid: bool) -> None:
        """Record whether the policy file is valid as it is now; a new one may ask no source that the old one asked."""
        self._policy_valid.set(valid)
        if not valid:
            self._policy_failures.inc()
            return
        self.breaker.set(0)
        for of_source in (self.stale_nodes, self.ages):
            of_source.clear()

    def _add_descheduler_metrics(self) -> None:
        counter = partial(prometheus.Counter, namespace="descheduler", registry=self.registry)
        gauge = partial(prometheus.Gauge, namespace="descheduler", registry=self.registry)
        histogram = partial(prometheus.Histogram, namespace="descheduler", registry=self.registry)
        self._evicted = counter("pods_evicted", "Pods by what became of their eviction", _EVICTED_LABELS)
        self.registry.register(_WithoutSuffix(self._evicted))
        self._cycle_durations, self._strategy_durations = [], []
        for name in ("", "descheduler_"):  # the descheduler gives its durations under two names
            of_cycle, of_strategy = f"{name}loop_duration_seconds", f"{name}strategy_duration_seconds"
            self._cycle_durations.append(histogram(of_cycle, "Time of a cycle", buckets=_CYCLE_BUCKETS))
            labelled = histogram(of_strategy, "Time of a strategy", _RUN[::-1], buckets=_STRATEGY_BUCKETS)
            self._strategy_durations.append(labelled)
        versions = ("GoVersion", "AppVersion", "DeschedulerVersion", "GitBranch", "GitSha1")
        gauge("build_info", "Versions", versions).labels("", f"rebalancer-{__version__}", _DESCHEDULER, "", "").set(1)

    def _add_our_metrics(self) -> None:
        counter = partial(prometheus.Counter, namespace="rebalancer", registry=self.registry)
        gauge = partial(prometheus.Gauge, namespace="rebalancer", registry=self.registry)
        histogram = partial(prometheus.Histogram, namespace="rebalancer", registry=self.registry)
        self._cycles = counter("cycles", "Cycles by how they ended", ("result", "dry_run"))
        self.skipped_ticks = counter("ticks_skipped", "Starts that fell into a cycle that overran")
        self._considered = counter("pods_considered", "Pods that strategies asked for", (*_RUN, "dry_run"))
        self._evictions = counter("evictions", "Evictions by result", (*_RUN, "result", "dry_run"))
        self._refused = counter("pods_refused", "Pods refused, by first cause", (*_RUN, "by", "dry_run"))
        self.requests = counter("api_requests", "Requests to the API server", ("verb", "code"))
        self.source_errors = counter("source_errors", "Sources of usage without a usable answer", ("source",))
        self._policy_failures = counter("policy_reload_failures", "Readings of a policy file that is not valid")
        gauge("build_info", "Versions", ("version", "python")).labels(__version__, platform.python_version()).set(1)
        self._last_good = gauge("last_successful_cycle_timestamp_seconds", "End of the last good cycle", ("dry_run",))
        self.interval = gauge("interval_seconds", "Time from start to start of cycles")  # 0 for a single one
        self.leader = gauge("leader", "1 while this process holds the Lease")
        self._policy_valid = gauge("policy_valid", "1 while the policy file is valid as it is now")
        self._nodes = gauge("nodes", "Nodes by state, as a strategy saw them", (*_RUN, "state"))
        self.stale_nodes = gauge("source_stale_nodes", "Nodes without a fresh sample", ("source",))
        self._marked = gauge("marked_nodes", "Nodes that a marking rule marks", ("rule",))
        self.breaker = gauge("breaker_open", "1 while the breaker lets nothing go, or one pod as a try")
        self.ages = gauge("source_sample_age_seconds", "Age of the oldest sample", ("source",))
        stage, of_nodes = ("stage",), ("resource", "moment")
        self.stages = histogram("stage_duration_seconds", "Time of a stage of a cycle", stage, buckets=_CYCLE_BUCKETS)
        name = "node_utilization_percent"
        self._utilization = histogram(name, "Nodes by utilization", of_nodes, buckets=_PERCENT_BUCKETS)

    def _count_evicted(self, entry: Entry, result: str) -> None:
        if self._dry_run == "true":
            return
        series = (result, entry.strategy, entry.profile, entry.pod.namespace, entry.pod.node)
        if series not in self._evicted_series and len(self._evicted_series) >= MOST_SERIES:
            series = (*series[:3], OTHER, OTHER)
        else:
            self._evicted_series.add(series)
        self._evicted.labels(*series).inc()


def _result(verdict: Verdict) -> str:
    if not isinstance(verdict, Granted):
        return "error"
    if verdict.restarted:
        return "restarted"
    return "background" if verdict.background else "success"


class _WithoutSuffix(Collector):
    """The same counter under its old name, without `_total`, for dashboards that use that name."""

    def __init__(self, counter: prometheus.Counter) -> None:
        self._counter = counter

    def collect(self) -> Iterator[Metric]:
        for family in self._counter.collect():
            old = Metric(family.name, f"{family.documentation} (old name)", "unknown")
            for sample in family.samples:
                old.add_sample(family.name, sample.labels, sample.value)
            yield old
