"""A live run, from the connection to the report; a dry run on a live cluster goes the same way and evicts nothing.

1. Connect, with metrics, traces and health served beside it (`attended`).
2. Ask the person at the terminal, if there is one (`Consent`).
3. Take the turn, look, clear up after others, decide and act (`cycle`).
4. Count the outcome, show the report of it, and export metrics (`attempt`).  `rebalancer.run.loop` repeats 3 and 4.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.engine.cycle import run_cycle
from rebalancer.engine.ledger import Entry, Ledger
from rebalancer.engine.restarts import restarting
from rebalancer.errors import MarksLeft
from rebalancer.eviction.causes import Code
from rebalancer.eviction.verdict import refused
from rebalancer.kube.tries import Permit, RetryPolicy
from rebalancer.report.document import Finished, document
from rebalancer.report.overview import NO_LIMITS
from rebalancer.report.view import new_pods
from rebalancer.run import live, steered
from rebalancer.run.cluster_view import LiveRun, LiveView, view_cluster
from rebalancer.run.interruption import Interruption
from rebalancer.run.leadership import Turn, turn
from rebalancer.run.live_steer import LiveSteer
from rebalancer.run.memory import told
from rebalancer.run.options import Deliver, Options, Outcome, in_pod
from rebalancer.run.progress import Progress
from rebalancer.run.telemetry import Telemetry, export, served, traced
from rebalancer.run.watch import Watch
from rebalancer.run.work import Work, plan, publish

_LOG = logging.getLogger(__name__)
_FRESH_SECONDS = 60.0  # A view of the cluster that is older than this is not used: the cluster is read again

#: Shows the report of a plan, and asks whether to carry it out; raises Declined if the answer is no.  When the question
#: is asked again, it is given the pods of the plan that were not shown before.
Agree = Callable[[Mapping[str, Any], Sequence[str]], None]
#: Returns how the person is asked about a cluster, of which nothing was read yet; a UsageError where nobody can answer.
Person = Callable[[Mapping[str, str | None]], Agree]


def run_live(
    options: Options,
    work: Work,
    person: Person | None,
    interruption: Interruption,
    retry_policy: RetryPolicy | None,
    progress: Progress,
    deliver: Deliver,
) -> Outcome:
    """Run one cycle on a live cluster; arguments and errors are those of `rebalancer.run.start.run`."""

    def show(outcome: Outcome) -> int:
        return deliver(replace(outcome, exit_code=_exit_code(outcome, interruption)))

    with attended(options, progress) as telemetry:
        client = live.open_cluster(options.client, retry_policy, telemetry.request)
        interruption.ending = client.ending
        run = LiveRun(options, client, telemetry, interruption, show)
        if person is None or options.dry_run:
            warn_of_no_limits(work, options)
            return attempt(run, work)
        agree = person(run.description)
        steered.demand_permissions(client, work)
        consent = Consent(agree, run, work)
        while True:  # the Lease is not held while waiting for the answer
            consent.obtain()
            with suppress(Unseen):
                return attempt(run, work, consent=consent)


def attempt(run: LiveRun, work: Work, permit: Permit | None = None, consent: "Consent | None" = None) -> Outcome:
    """Run a cycle, count its outcome, show its report, and only then export metrics: that may take long, or hang."""
    try:
        with run.telemetry.cycle():
            finished = cycle(run, work, permit, consent)
            run.telemetry.finished(finished)
        outcome = publish(finished, run.options)
        run.telemetry.metrics.report_made(outcome.report)
        return replace(outcome, exit_code=run.deliver(outcome))
    finally:
        export(run.options.export, run.telemetry.metrics, run.description, run.client.ending.is_set)


def cycle(run: LiveRun, work: Work, permit: Permit | None = None, consent: "Consent | None" = None) -> Finished:
    """Take the turn, look, clear up what other runs have left, and evict what the policy picks; a dry run only plans.

    A leader has the permit already.  Raises Unseen where the person has to be asked again.
    """
    if consent is not None and (nothing := consent.nothing_to_do()):
        return nothing
    if not run.options.explains and (closed := work.policy.schedule.closed(datetime.now(UTC))):
        return _skipped(run, closed)
    if run.options.dry_run:
        return _plan(run, work, view_cluster(run, work))
    with turn(run.client, run.options, permit) as ours:
        if ours.skipped:
            return _skipped(run, ours.skipped)
        agreed = consent.fresh_view(waited=ours.waited) if consent else None
        steered.demand_permissions(run.client, work)
        view = agreed or view_cluster(run, work)
        before = steered.clear_up(run.client, run.options.lease, work, view.snapshot, ours.permit)
        return _act(run, work, view, ours, before)


def _skipped(run: LiveRun, why: str) -> Finished:
    nothing = Cluster(Snapshot(now=datetime.now(UTC), nodes=(), pods=()))
    return Finished(Ledger(skipped=why), nothing, False, run.description, "wall")


def _plan(run: LiveRun, work: Work, view: LiveView) -> Finished:
    cluster, known = work.cluster(view.snapshot, view.measure), view.recollection
    with run.telemetry.stage("plan"):
        ledger = plan(cluster, work, run.telemetry.observe, run.telemetry.around, known)
    return Finished(ledger, cluster, True, run.description, "wall", (*work.warnings, *told(known, ledger)))


def _act(run: LiveRun, work: Work, view: LiveView, ours: Turn, before: steered.CleanUp) -> Finished:
    """Evict what the strategies pick, wave by wave where the policy steers; take all marks off; tell."""
    cluster, diary = work.cluster(view.snapshot, view.measure), view.diary
    watch = Watch(run, work, diary, restarting(work.trust, cluster), ours.permit, view.taken_at)
    closures = watch.closures
    run.interruption.then(watch.halt.signal)
    events = live.EventLog(run.client, watch.halt, failures=work.policy.eviction_failure_event_notification)
    with steered.steering(watch, view.snapshot, before) as steer:
        ledger = _evict(run, work, cluster, watch, events, steer)
    _defer(ledger, work, view, watch)
    with run.telemetry.stage("events"):
        undelivered = events.close()
    for notice in closures.notices():
        _LOG.warning("%s", notice)
    notes = ["" if work.limits else NO_LIMITS, ledger.stopped, *closures.notices(), undelivered, *before.told]
    notes += [*(steer.told() if steer else ()), diary.problem if diary else "", *told(view.recollection), ours.alarm]
    warnings, alarms = (*work.warnings, *filter(None, notes)), tuple(filter(None, [ours.alarm]))
    return Finished(ledger, cluster, False, run.description, "wall", warnings, alarms, bool(steer and steer.left))


def _evict(
    run: LiveRun, work: Work, cluster: Cluster, watch: Watch, events: live.EventLog, steer: LiveSteer | None
) -> Ledger:
    telemetry, diary, halt = run.telemetry, watch.diary, watch.halt
    hearers = [live.log_verdict, telemetry.observe, events.observe, *([diary.observe] if diary else [])]

    def observe(entry: Entry) -> None:
        for hear in hearers:
            hear(entry)

    hold = steered.holding(run.client, halt, work.policy.hold, steer) if work.policy.hold else None
    known, most = diary.recollection if diary else None, run.options.max_parallel
    plans, limits, timer, around = work.plans, work.limits, time.perf_counter, telemetry.around
    with telemetry.stage("evict"):
        ledger = run_cycle(cluster, plans, limits, watch.evict, timer, observe, around, steer, hold, known, most)
    ledger.rested = ledger.stopped != "" and ledger.stopped == watch.rested  # by a pause, a window or the breaker
    if diary:
        diary.close(ledger)
        telemetry.metrics.breaker.set(diary.recollection.memory.breaker is not None)
        if why := diary.opened():
            events.tell(run.options.lease, "BreakerOpen", why)
    return ledger


def _defer(ledger: Ledger, work: Work, view: LiveView, watch: Watch) -> None:
    """Record what a patient run did not reach; not after a signal, when there is no time."""
    if not (ledger.stopped and work.trust) or watch.halt.signalled.is_set():
        return
    asked = (*ledger.evictions, *ledger.unknown, *ledger.failures, *ledger.refusals)
    reached, deferred = {entry.pod.key for entry in asked}, Counter[tuple[str, str]]()
    for entry in plan(work.cluster(view.snapshot, view.measure), work, recollection=view.recollection).evictions:
        if entry.pod.key not in reached:
            ledger.record(msgspec.structs.replace(entry, verdict=refused(Code.DEFERRED, why=ledger.stopped)))
            deferred[entry.profile, entry.strategy] += 1
    runs = [(run, deferred.pop((run.profile, run.strategy), 0)) for run in ledger.runs]
    ledger.runs[:] = [replace(run, refused=run.refused + more) for run, more in runs]


def _exit_code(outcome: Outcome, interruption: Interruption) -> int:
    """Return the exit code of a run: after a signal that of the signal, so that a shell stops its script.

    In a pod, a run that has evicted or may have evicted keeps its own exit code: after an error a Job would start it
    again with fresh limits.
    """
    has_spent = outcome.report["evictions"] or outcome.report["unknown"]
    keeps_own = outcome.exit_code == MarksLeft.exit_code or (in_pod() and has_spent)
    return outcome.exit_code if keeps_own else interruption.exit_code or outcome.exit_code


@contextmanager
def attended(options: Options, progress: Progress) -> Iterator[Telemetry]:
    """Serve health and metrics and send traces while this is entered, if the options say so or by default in a pod."""
    with traced(options.tracing) as span:
        telemetry = Telemetry(options, span, progress)
        with served(options.serving, telemetry):
            yield telemetry


def warn_of_no_limits(work: Work, options: Options) -> None:
    """Warn at the start that nothing limits a live run: at the end it would be too late."""
    if not (work.limits or options.dry_run):
        _LOG.warning("%s", NO_LIMITS)


class Unseen(Exception):  # noqa: N818  named like the rest of the tree
    """The plan of a fresh view has a pod that was not shown before: ask again."""


class Consent:
    """The consent to a live run: the latest view of the cluster, its plan, and the pods that were shown."""

    def __init__(self, agree: Agree, run: LiveRun, work: Work) -> None:
        self._agree, self._run, self._work = agree, run, work
        self._shown: frozenset[str] = frozenset()
        self._look()

    def _look(self) -> None:
        run, work, progress = self._run, self._work, self._run.telemetry.progress
        self._view = view = view_cluster(run, work)
        cluster = work.cluster(view.snapshot, view.measure)
        with progress.stage("plan"):
            ledger = plan(cluster, work, around=progress.around, recollection=view.recollection)
        progress.planned = len(ledger.evictions)
        self._planned = Finished(ledger, cluster, True, run.description, "wall", work.warnings)

    def _is_old(self) -> bool:
        age = self._run.client.retry_policy.clock() - self._view.taken_at
        return age >= min(_FRESH_SECONDS, self._run.options.deadline)

    def obtain(self, *, for_later: bool = False) -> None:
        """Show the plan and ask; if no pod would be evicted, ask only if the answer is for later cycles too."""
        if self._is_old():
            self._look()
        report = document(self._planned)
        if report["evictions"] or for_later:
            self._agree(report, new_pods(report, self._shown) if self._shown else [])
        self._shown |= {each["uid"] for each in report["evictions"]}

    def nothing_to_do(self) -> Finished | None:
        """Return the plan as the result of the run if it evicts nothing; the cluster is not read again for new pods."""
        if self._planned.ledger.evictions:
            return None
        warnings = (*self._work.warnings, *filter(None, [self._planned.ledger.stopped]))
        return replace(self._planned, dry_run=False, warnings=warnings)

    def fresh_view(self, *, waited: bool) -> LiveView:
        """Return the view that was agreed to, or a new one if it is too old or another run was waited for.

        Raises Unseen where the plan of the new view has a pod that was not shown.
        """
        if waited or self._is_old():
            self._look()
            if {entry.pod.uid for entry in self._planned.ledger.evictions} - self._shown:
                self._run.telemetry.result = "skipped"  # it has not failed
                raise Unseen
        return self._view
