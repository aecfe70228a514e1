"""Cycles for as long as the program runs; a cycle that fails does not end it.

1. Take the Lease: with --leader-elect once and for all cycles, without it for each cycle anew.  A dry run needs none.
2. Read the policy file again if its content has changed; if the new one is bad, keep the last good one.
3. Run a cycle and deliver its report.  Count failed cycles in a row.
4. Wait for the next start (`rebalancer.app.schedule`), in naps of 1 s.  A signal, or losing the Lease, ends the wait.

Example, an interval of 300 s: cycles start at 0, 300 and 600 s, the later ones up to 30 s late.  The one at 600 s
fails: the next one starts at 1200 s, and if that fails too, the one after it at 2400 s.
"""

import gc
import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import NoReturn

from rebalancer.app.consent import Consent, Person
from rebalancer.app.interruption import Interruption
from rebalancer.app.leadership import Leadership
from rebalancer.app.lease_timing import boottime
from rebalancer.app.live import LiveCluster
from rebalancer.app.live_cycle import connect, cycle, warn_of_no_limits
from rebalancer.app.live_run import attempt, attended
from rebalancer.app.options import Deliver, Options
from rebalancer.app.policy_file import PolicyFile
from rebalancer.app.policy_reporter import PolicyReporter
from rebalancer.app.schedule import Schedule, Start
from rebalancer.app.signs import Progress
from rebalancer.app.steered import demand_permissions
from rebalancer.app.telemetry import Telemetry
from rebalancer.app.turns import LEADER, candidate, in_turn
from rebalancer.app.work import Finished, work_maker
from rebalancer.errors import ClusterError, Forbidden, Interrupted, RebalancerError

_LOG = logging.getLogger(__name__)

#: Waits are cut into naps: time during which a laptop is closed would not count in one long sleep.
_NAP_SECONDS = 1.0


def run_loop(
    options: Options,
    person: Person,
    deliver: Deliver,
    interruption: Interruption,
    progress: Progress | None = None,
) -> None:
    """Run cycles until a signal comes.

    Raises:
        UsageError: an option or the policy cannot be used, or the run was declined.
        ClusterError: the API server is not configured or not reachable, or the permission for the Lease is missing.
    """
    with ExitStack() as stack:
        telemetry = stack.enter_context(attended(options, progress))
        reporter = PolicyReporter(telemetry)
        policy = PolicyFile(options.policy, reporter.report, work_maker(options), strict=options.strict)
        cluster = connect(options, telemetry)
        for warning in policy.work().warnings:
            _LOG.warning("policy %s: %s", options.policy, warning)
        if not options.dry_run:
            demand_permissions(cluster, policy.work())
        if not options.dry_run and person.must_be_asked(cluster.description):
            Consent(person, cluster, options, policy.work(), telemetry).obtain(for_later=True)
        reporter.open(cluster, options.lease.resource_namespace)
        stack.callback(reporter.close)
        warn_of_no_limits(options, policy.work())
        interruption.then(_leave)
        try:
            _Loop(options, cluster, policy, telemetry, interruption, deliver).run()
        except Interrupted as signal:
            _LOG.info("the loop ends: %s", signal)


class _Loop:
    """The cycles of one process."""

    def __init__(
        self,
        options: Options,
        cluster: LiveCluster,
        policy: PolicyFile,
        telemetry: Telemetry,
        interruption: Interruption,
        deliver: Deliver,
    ) -> None:
        self._options = options
        self._cluster = cluster
        self._policy = policy
        self._telemetry = telemetry
        self._interruption = interruption
        self._deliver = deliver
        self._failures = 0
        self._schedule = Schedule(options.interval, boottime())

    def run(self) -> NoReturn:
        """Run until a signal comes.

        Raises:
            Interrupted: a signal came.
            ClusterError: the permission for the Lease is missing.
        """
        if not self._options.lease.leader_elect or self._options.dry_run:
            while True:
                self._cycle_and_wait(lambda: in_turn(self._cluster, self._options, self._act, _sleep))
        leadership = candidate(self._cluster, self._options.lease, LEADER)
        try:
            while True:
                self._lead(leadership)
        finally:
            leadership.release()
            self._telemetry.metrics.leading(leading=False)

    def _lead(self, leadership: Leadership) -> None:
        """Wait for the Lease, and run cycles as long as it is held."""
        self._follow_until_held(leadership)
        self._telemetry.metrics.leading(leading=True)
        self._telemetry.health.lead()
        self._schedule = Schedule(self._options.interval, boottime())
        while leadership.is_held():
            self._cycle_and_wait(lambda: self._act(leadership.permit), leadership.is_held)
        self._telemetry.metrics.leading(leading=False)

    def _follow_until_held(self, leadership: Leadership) -> None:
        self._telemetry.health.follow()
        while True:
            try:
                if leadership.take():
                    return
            except Forbidden:
                raise  # waiting does not bring the permission, and no process could lead without it
            except ClusterError as error:
                _LOG.warning("the lease %s cannot be had: %s", leadership.name, error)
            _sleep(leadership.retry_seconds)

    def _cycle_and_wait(self, act: Callable[[], Finished], go_on: Callable[[], bool] = lambda: True) -> None:
        self._policy.refresh()
        self._telemetry.health.cycle_began()
        self._failures = 0 if self._cycle(act) else self._failures + 1
        self._telemetry.health.cycle_ended(self._schedule.pause(self._failures))
        gc.collect()  # the snapshot has reference cycles, and would stay in memory until Python's next collection
        self._interruption.then(_leave)
        if self._interruption.signal:
            _leave(self._interruption.signal)
        start = self._next_start()
        while boottime() < start.at and go_on():
            time.sleep(max(0.0, min(_NAP_SECONDS, start.at - boottime())))

    def _cycle(self, act: Callable[[], Finished]) -> bool:
        """Run one cycle and return whether it succeeded."""
        try:
            outcome = attempt(self._cluster, self._options, self._telemetry, act)
        except Interrupted:
            raise
        except RebalancerError as error:
            _LOG.error("the cycle failed: %s", error)
            return False
        self._deliver(outcome)
        return outcome.exit_code == 0

    def _act(self, permit: Callable[[], str]) -> Finished:
        work = self._policy.work()
        return cycle(self._cluster, self._options, work, self._interruption, self._telemetry, permit)

    def _next_start(self) -> Start:
        start = self._schedule.after(boottime(), self._failures)
        if start.skipped:
            self._telemetry.metrics.ticks_skipped(start.skipped)
            _LOG.warning("the cycle took longer than --descheduling-interval: starts skipped: %d", start.skipped)
        if self._failures:
            _LOG.warning(
                "failed cycles in a row: %d; the next one starts in %.0f s", self._failures, start.at - boottime()
            )
        return start


def _leave(signal: str) -> NoReturn:
    raise Interrupted(f"stopped by {signal}", 0)


def _sleep(seconds: float) -> None:
    until = boottime() + seconds
    while (left := until - boottime()) > 0:
        time.sleep(min(_NAP_SECONDS, left))
