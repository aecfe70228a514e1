"""One cycle from options to report, on a file or on a live cluster."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from rebalancer.app import policies
from rebalancer.app.interruption import Interruption
from rebalancer.app.usage import usage_beside_file
from rebalancer.cluster.cluster import Cluster, Measure
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.engine.cycle import ProfilePlan, run_cycle
from rebalancer.engine.gate import DrySink
from rebalancer.engine.ledger import Entry, Ledger
from rebalancer.errors import UsageError
from rebalancer.eviction.verdict import Failed, Granted, Refused
from rebalancer.policy import Policy
from rebalancer.report.document import Circumstances, document
from rebalancer.snapshot_file import read_snapshot_file

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """What a run is asked to do; names as on the command line."""

    policy: str
    kubeconfig: str | None = None
    context: str | None = None
    dry_run: bool = False
    snapshot: str | None = None
    now: str | None = None
    strict: bool = False
    deadline: float = 300.0
    fail_on_error: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to: its report, and the exit code that says it in a number."""

    report: dict[str, Any]
    exit_code: int


#: Asked before the first eviction of a live run, with the description of the cluster; raises to decline.
Confirm = Callable[[dict[str, str | None], bool], None]


def run(options: Options, confirm: Confirm, interruption: Interruption) -> Outcome:
    """Run one cycle.

    Args:
        options: what to do.
        confirm: asked before a live run.
        interruption: entered; told what a signal means once there is something to finish.

    Raises:
        UsageError: options, policy or file cannot be used.
        ClusterError: there is no cluster to work on.
    """
    _agree(options)
    loaded = policies.read_policy(options.policy, strict=options.strict)
    plans = policies.plans(loaded.policy)
    warnings = tuple(str(problem) for problem in loaded.warnings)
    if options.snapshot is not None:
        return _run_offline(options, options.snapshot, loaded.policy, plans, warnings)
    return _run_live(options, loaded.policy, plans, warnings, confirm, interruption)


def _agree(options: Options) -> None:
    """Raise UsageError for options that contradict each other."""
    if options.snapshot is None and options.now is not None:
        raise UsageError("--now goes with --snapshot: a live cluster has its own time")
    if options.snapshot is not None and (options.kubeconfig is not None or options.context is not None):
        raise UsageError("--kubeconfig and --context name a live cluster: leave them out, or --snapshot")


def _run_offline(
    options: Options, path: str, policy: Policy, plans: tuple[ProfilePlan, ...], warnings: tuple[str, ...]
) -> Outcome:
    file = read_snapshot_file(path)
    snapshot = file.collection.snapshot(datetime.now(UTC))
    now, clock = _clock(options.now, file.recorded, snapshot)
    if snapshot.budgets is None:
        warnings += ("the snapshot holds no PodDisruptionBudgets: pods that one protects are not recognised",)
    cluster = Cluster(snapshot.at(now), policy.node_selector, usage_beside_file(policy, snapshot))
    return _dry_run(options, cluster, policy, plans, Circumstances(True, {"file": path}, clock, warnings))


def _clock(given: str | None, recorded: datetime | None, snapshot: Snapshot) -> tuple[datetime, str]:
    if given is not None:
        return parse_now(given), "option"
    if recorded is not None:
        return recorded, "snapshot"
    newest = snapshot.newest()
    return (newest, "newest") if newest else (snapshot.now, "wall")


def parse_now(text: str) -> datetime:
    """Read a time as RFC 3339 writes it, with its offset.

    Raises:
        UsageError: it is none.
    """
    try:
        time_given = datetime.fromisoformat(text)
    except ValueError:
        time_given = None
    if time_given is None or time_given.tzinfo is None:
        raise UsageError(f"--now {text!r} is no RFC 3339 time; write it like 2026-01-15T12:00:00Z")
    return time_given


def _run_live(
    options: Options,
    policy: Policy,
    plans: tuple[ProfilePlan, ...],
    warnings: tuple[str, ...],
    confirm: Confirm,
    interruption: Interruption,
) -> Outcome:
    from rebalancer.app import live, live_usage  # noqa: PLC0415  the API client is not needed offline

    cluster = live.open_cluster(options.kubeconfig, options.context)
    if not options.dry_run:
        confirm(cluster.description, cluster.connection.in_cluster)
        warnings += _unlimited(policy)
    circumstances = Circumstances(options.dry_run, cluster.description, "wall", warnings)
    sink = live.LiveSink(cluster.client, policy.grace_period_seconds, options.deadline)
    snapshot = live.read_cluster(cluster, policies.kinds_needed(plans))
    measure = live_usage.live_usage(policy, cluster)
    work = Cluster(snapshot, policy.node_selector, measure)
    if options.dry_run:
        return _dry_run(options, work, policy, plans, circumstances)
    interruption.then(sink.stop)
    events = live.EventLog(cluster.client, failures=policy.eviction_failure_event_notification)

    def observe(entry: Entry) -> None:
        _log_verdict(entry)
        events.observe(entry)

    ledger = run_cycle(work, plans, policies.limits(policy), sink, time.perf_counter, observe)
    extra = [ledger.stopped, events.close(lambda: ledger.stopped is not None or sink.is_stopped)]
    extra += [_unforeseen(ledger, snapshot, policy, plans, measure)] if sink.is_denied else []
    warnings += tuple(filter(None, extra))
    return _outcome(options, ledger, work, replace(circumstances, warnings=warnings))


def _log_verdict(entry: Entry) -> None:
    what = f"{entry.pod.namespace}/{entry.pod.name} on {entry.pod.node} ({entry.strategy}: {entry.because})"
    match entry.verdict:
        case Granted():
            _LOG.info("evicted %s", what)
        case Refused(by, reason):
            _LOG.debug("refused by %s (%s): %s", by, reason, what)
        case Failed(error):
            _LOG.warning("not evicted: %s: %s", what, error)


def _unlimited(policy: Policy) -> tuple[str, ...]:
    """Warn of a live run that nothing limits: at once, since afterwards is too late."""
    if policies.limits(policy):
        return ()
    warning = "the policy sets no limit on evictions (maxNoOfPodsToEvictTotal, ...PerNode, ...PerNamespace)"
    _LOG.warning("%s", warning)
    return (warning,)


def _unforeseen(
    ledger: Ledger, snapshot: Snapshot, policy: Policy, plans: tuple[ProfilePlan, ...], measure: Measure
) -> str:
    """Name the pods that went in the place of others which the API server did not let go."""
    plan = _plan(Cluster(snapshot, policy.node_selector, measure), policy, plans)
    planned = {entry.pod.key for entry in plan.evictions}
    extra = [f"{entry.pod.namespace}/{entry.pod.name}" for entry in ledger.evictions if entry.pod.key not in planned]
    return f"evicted in place of others, a dry run would not have listed them: {', '.join(extra)}" if extra else ""


def _plan(cluster: Cluster, policy: Policy, plans: tuple[ProfilePlan, ...]) -> Ledger:
    return run_cycle(cluster, plans, policies.limits(policy), DrySink(), time.perf_counter)


def _dry_run(
    options: Options,
    cluster: Cluster,
    policy: Policy,
    plans: tuple[ProfilePlan, ...],
    circumstances: Circumstances,
) -> Outcome:
    return _outcome(options, _plan(cluster, policy, plans), cluster, circumstances)


def _outcome(options: Options, ledger: Ledger, cluster: Cluster, circumstances: Circumstances) -> Outcome:
    if ledger.skipped:
        _LOG.warning("nothing was done: %s", ledger.skipped)
    failed = bool(ledger.failures or ledger.stopped or any(run.error for run in ledger.runs))
    # A Job starts a failed pod again with fresh limits, so a run that has evicted does not end in an error by itself.
    exit_code = 1 if failed and (options.fail_on_error or not ledger.evictions) else 0
    return Outcome(document(ledger, cluster, circumstances), exit_code)
