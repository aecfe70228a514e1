"""One cycle from options to report, on a file or on a live cluster."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rebalancer.app import policies
from rebalancer.engine.cycle import ProfilePlan, run_cycle
from rebalancer.engine.gate import DrySink
from rebalancer.engine.ledger import Ledger
from rebalancer.errors import UsageError
from rebalancer.model.cluster import Cluster
from rebalancer.model.objects import Snapshot
from rebalancer.policy import Policy
from rebalancer.report.document import Circumstances, document
from rebalancer.snapshot_file import read_snapshot_file


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


def run(options: Options, confirm: Confirm) -> Outcome:
    """Run one cycle.

    Raises:
        UsageError: options, policy or file cannot be used.
        ClusterError: there is no cluster to work on.
    """
    loaded = policies.read_policy(options.policy, strict=options.strict)
    plans = policies.plans(loaded.policy)
    warnings = tuple(str(problem) for problem in loaded.warnings)
    if options.snapshot is not None:
        return _run_offline(options, options.snapshot, loaded.policy, plans, warnings)
    if options.now is not None:
        raise UsageError("--now goes with --snapshot: a live cluster has its own time")
    return _run_live(options, loaded.policy, plans, warnings, confirm)


def _run_offline(
    options: Options, path: str, policy: Policy, plans: tuple[ProfilePlan, ...], warnings: tuple[str, ...]
) -> Outcome:
    file = read_snapshot_file(path)
    snapshot = file.collection.snapshot(datetime.now(UTC))
    now, clock = _clock(options.now, file.recorded, snapshot)
    if snapshot.budgets is None:
        warnings += ("the snapshot holds no PodDisruptionBudgets: pods that one protects are not recognised",)
    return _dry_run(options, snapshot, now, policy, plans, Circumstances(True, {"file": path}, clock, warnings))


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
) -> Outcome:
    from rebalancer.app import live  # noqa: PLC0415  the API client is not needed offline

    cluster = live.open_cluster(options.kubeconfig, options.context)
    if not options.dry_run:
        confirm(cluster.description, cluster.connection.in_cluster)
        if not policies.limits(policy):
            warnings += (
                "the policy sets no limit on evictions (maxNoOfPodsToEvictTotal, ...PerNode, ...PerNamespace)",
            )
    snapshot = live.read_cluster(cluster, policies.kinds_needed(plans))
    circumstances = Circumstances(options.dry_run, cluster.description, "wall", warnings)
    if options.dry_run:
        return _dry_run(options, snapshot, snapshot.now, policy, plans, circumstances)
    sink = live.LiveSink(cluster.client, policy.grace_period_seconds, options.deadline)
    events = live.EventLog(cluster.client, failures=policy.eviction_failure_event_notification)
    work = Cluster(snapshot, policy.node_selector)
    with _stopping(sink.stop):
        ledger = run_cycle(work, plans, policies.limits(policy), sink, time.perf_counter, events.observe)
        undelivered = events.close()
    extra = tuple(filter(None, (ledger.stopped, undelivered)))
    return _outcome(options, ledger, work, Circumstances(False, cluster.description, "wall", warnings + extra))


def _dry_run(
    options: Options,
    snapshot: Snapshot,
    now: datetime,
    policy: Policy,
    plans: tuple[ProfilePlan, ...],
    circumstances: Circumstances,
) -> Outcome:
    cluster = Cluster(snapshot.at(now), policy.node_selector)
    ledger = run_cycle(cluster, plans, policies.limits(policy), DrySink(), time.perf_counter)
    return _outcome(options, ledger, cluster, circumstances)


def _outcome(options: Options, ledger: Ledger, cluster: Cluster, circumstances: Circumstances) -> Outcome:
    failed = bool(ledger.failures or ledger.stopped or any(run.error for run in ledger.runs))
    # A Job starts a failed pod again with fresh limits, so a run that has evicted does not end in an error by itself.
    exit_code = 1 if failed and (options.fail_on_error or not ledger.evictions) else 0
    return Outcome(document(ledger, cluster, circumstances), exit_code)


@contextmanager
def _stopping(stop: Callable[[str], None]) -> Iterator[None]:
    """Let SIGTERM and SIGINT stop the cycle after the request in flight instead of ending the process."""

    def ask(number: int, _frame: object) -> None:
        stop(signal.Signals(number).name)

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
