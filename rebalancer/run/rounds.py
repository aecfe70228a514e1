"""Rounds: the same work again and again, in turn with other processes, until a signal comes.

1. With `--leader-elect`, wait for the Lease, and hold it from round to round.  Without, each round takes its own turn.
2. Look whether the settings have changed, and do the work.  Count failed rounds in a row.
3. Wait for the next start (`rebalancer.run.rounds`), in naps of 1 s.  A signal, or losing the Lease, ends the wait.

1. The next tick is one pause after the last tick.  The pause is the interval, doubled for each failed cycle in a row,
   up to ten intervals.
2. Ticks that passed while the cycle ran are skipped.
3. The cycle starts at the tick or up to a tenth of an interval after it.

Example, an interval of 300 s: ticks at 0, 300, 600 s; after one failure the pause is 600 s, then 1200, 2400, and 3000 s
from the fourth on.  If the cycle of tick 0 ends at 700 s, ticks 300 and 600 are skipped and the next one is at 900 s.
"""

import gc
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NoReturn, Protocol

from rebalancer.clock import boottime
from rebalancer.errors import ClusterError, Forbidden, Interrupted, RebalancerError
from rebalancer.kube.answers import NotFound
from rebalancer.kube.halt import Permit
from rebalancer.run.interruption import Interruption
from rebalancer.run.leadership import Leadership
from rebalancer.run.live import LiveCluster
from rebalancer.run.options import Options
from rebalancer.run.telemetry import Telemetry
from rebalancer.run.turns import LEADER, candidate

_LOG = logging.getLogger(__name__)

#: The longest pause after failed cycles, in intervals.
MOST_INTERVALS = 10
#: How late a start may be, in intervals, so that many programs do not send requests to one API server at once.
_JITTER = 0.1


@dataclass(frozen=True, slots=True)
class Start:
    """The start of the next cycle.

    Attributes:
        at: when it starts, on the schedule's clock.
        skipped: how many starts before it were left out, since the last cycle overran.
    """

    at: float
    skipped: int = 0


class Ticks:
    """The ticks of a loop.

    Args:
        interval: seconds from start to start; more than 0.
        start: when the first cycle starts, on a clock in seconds.
        jitter: returns a random number between two bounds.
    """

    def __init__(self, interval: float, start: float, jitter: Callable[[float, float], float] = random.uniform) -> None:
        self._interval = interval
        self._tick = start
        self._jitter = jitter

    def pause(self, failures: int) -> float:
        """Return the seconds between two ticks after so many failed cycles in a row."""
        doubled = min(failures, MOST_INTERVALS)  # after a month of failures the power would not fit a float
        return self._interval * float(min(MOST_INTERVALS, 2**doubled))

    def after(self, now: float, failures: int) -> Start:
        """Return the next start.

        Args:
            now: when the last cycle ended.
            failures: failed cycles in a row, the last one included.
        """
        self._tick += self.pause(failures)
        skipped = 0
        if self._tick < now:
            skipped = int((now - self._tick) // self._interval) + 1
            self._tick += skipped * self._interval
        return Start(self._tick + self._jitter(0.0, self._interval * _JITTER), skipped)


#: Waits are cut into naps: time during which a laptop is closed would not count in one long sleep.
_NAP_SECONDS = 1.0


class Round(Protocol):
    """What is done in each round."""

    def refresh(self) -> None:
        """Read the settings again if they have changed."""
        ...

    def act(self, permit: Permit | None) -> bool:
        """Do the work once, and return whether it succeeded.

        Args:
            permit: returns why no further write is allowed; None where the work has to take its own turn.

        Raises:
            RebalancerError: it failed.
        """
        ...


class Rounds:
    """The rounds of one process.

    Args:
        options: how often, and whether one process leads.
        cluster: the API server.
        telemetry: is told of rounds and leadership.
        interruption: entered; a signal ends the rounds.
        work: what is done.
        flag: the option that says how often, for messages.
    """

    def __init__(
        self,
        options: Options,
        cluster: LiveCluster,
        telemetry: Telemetry,
        interruption: Interruption,
        work: Round,
        flag: str,
    ) -> None:
        self._options = options
        self._cluster = cluster
        self._telemetry = telemetry
        self._interruption = interruption
        self._work = work
        self._flag = flag
        self._failures = 0
        self._schedule = Ticks(options.interval, boottime())

    def run(self) -> None:
        """Run until a signal comes.

        Raises:
            ClusterError: the permission for the Lease or its namespace is missing.
        """
        self._interruption.then(_leave)
        try:
            self._run()
        except Interrupted as signal:
            _LOG.info("the loop ends: %s", signal)

    def _run(self) -> NoReturn:
        if not self._options.lease.leader_elect or self._options.dry_run:
            while True:
                self._act_and_wait(None)
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
        self._schedule = Ticks(self._options.interval, boottime())
        while leadership.is_held():
            self._act_and_wait(leadership.permit, leadership.is_held)
        self._telemetry.metrics.leading(leading=False)

    def _follow_until_held(self, leadership: Leadership) -> None:
        self._telemetry.health.follow()
        while True:
            try:
                if leadership.take():
                    sleep(leadership.pause())
                    return
            except (Forbidden, NotFound):
                raise  # waiting brings neither the permission nor the namespace; no process could lead without them
            except ClusterError as error:
                _LOG.warning("the lease %s cannot be had: %s", leadership.name, error)
            sleep(leadership.retry_seconds)

    def _act_and_wait(self, permit: Permit | None, go_on: Callable[[], bool] = lambda: True) -> None:
        self._work.refresh()
        self._telemetry.health.cycle_began()
        self._failures = 0 if self._succeeds(permit) else self._failures + 1
        self._telemetry.health.cycle_ended(self._schedule.pause(self._failures))
        gc.collect()  # the snapshot has reference cycles, and would stay in memory until Python's next collection
        self._interruption.then(_leave)
        if self._interruption.signal:
            _leave(self._interruption.signal)
        start = self._next_start()
        self._telemetry.next_cycle = datetime.now(UTC) + timedelta(seconds=start.at - boottime())
        while boottime() < start.at and go_on():
            time.sleep(max(0.0, min(_NAP_SECONDS, start.at - boottime())))

    def _succeeds(self, permit: Permit | None) -> bool:
        try:
            return self._work.act(permit)
        except RebalancerError as error:
            _LOG.error("the cycle failed: %s", error)
            return False

    def _next_start(self) -> Start:
        start = self._schedule.after(boottime(), self._failures)
        if start.skipped:
            self._telemetry.metrics.ticks_skipped(start.skipped)
            _LOG.warning("the cycle took longer than %s: starts skipped: %d", self._flag, start.skipped)
        if self._failures:
            _LOG.warning(
                "failed cycles in a row: %d; the next one starts in %.0f s", self._failures, start.at - boottime()
            )
        return start


def _leave(signal: str) -> NoReturn:
    raise Interrupted(f"stopped by {signal}", 0)


def sleep(seconds: float) -> None:
    """Wait for so many seconds; a signal that raises ends the wait."""
    until = boottime() + seconds
    while (left := until - boottime()) > 0:
        time.sleep(min(_NAP_SECONDS, left))
