"""Cycles for as long as the program runs, in turn with other processes; a cycle that fails does not end it.

1. With `--leader-elect`, wait for the Lease, and hold it from cycle to cycle.  Without, each cycle takes its own turn.
   A dry run needs no Lease.
2. Read the policy file again if its content has changed; if the new one is bad, keep the last good one.
3. Run a cycle and deliver its report.  Count failed cycles in a row.
4. Wait for the next start, in naps of 1 s.  A signal, or losing the Lease, ends the wait.

When the next cycle starts (`Ticks`):

1. The next tick is one pause after the last tick.  The pause is the interval, doubled for each failed cycle in a row,
   up to ten intervals.
2. Ticks that passed while the cycle ran are skipped.
3. The cycle starts at the tick or up to a tenth of an interval after it.

Example, an interval of 300 s: ticks at 0, 300, 600 s; after one failure the pause is 600 s, then 1200, 2400, and 3000 s
from the fourth on.  If the cycle of tick 0 ends at 700 s, ticks 300 and 600 are skipped and the next one is at 900 s.
"""

import gc
import logging
import math
import random
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Generic, NoReturn, TypeVar

from rebalancer.clock import boottime
from rebalancer.errors import ClusterError, Forbidden, Interrupted, RebalancerError, UsageError
from rebalancer.kube.answers import NotFound
from rebalancer.kube.client import Client
from rebalancer.kube.config import SERVICE_ACCOUNT
from rebalancer.kube.events import Event, Events, reporting_instance
from rebalancer.kube.tries import Permit
from rebalancer.run.cluster_view import LiveRun
from rebalancer.run.interruption import NAP_SECONDS, Interruption, sleep
from rebalancer.run.leadership import LEADER, Leadership, candidate
from rebalancer.run.live import open_cluster
from rebalancer.run.live_run import Consent, Person, attempt, attended, warn_of_no_limits
from rebalancer.run.options import Deliver, Options, Outcome
from rebalancer.run.policies import policy_text, read_policy
from rebalancer.run.progress import Progress
from rebalancer.run.steered import demand_permissions
from rebalancer.run.telemetry import Telemetry
from rebalancer.run.work import Work, work_maker

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
MOST_INTERVALS = 10  # the longest pause after failed cycles, in intervals
#: How late a start may be, in intervals, so that many programs do not send requests to one API server at once.
_JITTER = 0.1
_CLOSE_SECONDS = 5.0  # to deliver the last Events


def run_loop(
    options: Options, person: Person | None, deliver: Deliver, interruption: Interruption, progress: Progress
) -> None:
    """Run cycles until a signal comes; arguments and errors are those of `rebalancer.run.start.run`."""
    options.demand_no_conflict()
    with ExitStack() as stack:
        telemetry = stack.enter_context(attended(options, progress))
        reporter, make, is_live = PolicyReporter(telemetry), work_maker(options), not options.dry_run
        parse = partial(read_policy, options.policy, strict=options.strict, live=is_live)
        policy = Watched("policy", options.policy, policy_text, parse, reporter.report)

        def work() -> Work:
            return make(policy.value)  # with new strategies: these keep nothing from cycle to cycle

        def show(outcome: Outcome) -> int:
            telemetry.last_report = outcome.report
            deliver(outcome)
            return outcome.exit_code  # a report that is lost does not make the next cycle wait longer

        def act(permit: Permit | None) -> bool:
            return attempt(run, work(), permit).exit_code == 0

        client = open_cluster(options.client, observe=telemetry.request)
        interruption.ending = client.ending
        run = LiveRun(options, client, telemetry, interruption, show)
        for warning in work().warnings:
            _LOG.warning("policy %s: %s", options.policy, warning)
        if is_live:
            demand_permissions(client, work())
            if person:
                Consent(person(run.description), run, work()).obtain(for_later=True)
            reporter.open(stack, client, options.lease.resource_namespace)  # a dry run writes not even an Event
            warn_of_no_limits(work(), options)
        Rounds(run, policy.refresh, act, "--descheduling-interval").run()


class Ticks:
    """The ticks of a loop: an interval apart, the first one at `start`, in seconds; `jitter` is between two bounds."""

    def __init__(self, interval: float, start: float, jitter: Callable[[float, float], float] = random.uniform) -> None:
        self._interval = interval
        self._tick = start
        self._jitter = jitter

    def pause(self, failures: int) -> float:
        """Return the seconds between two ticks after so many failed cycles in a row."""
        return self._interval * float(min(MOST_INTERVALS, 2**failures))

    def after(self, now: float, failures: int) -> tuple[float, int]:
        """Return the start after a cycle that ended now, and how many starts before it are left out as it overran."""
        self._tick += self.pause(failures)
        skipped = 0
        if self._tick < now:
            skipped = int((now - self._tick) // self._interval) + 1
            self._tick += skipped * self._interval
        return self._tick + self._jitter(0.0, self._interval * _JITTER), skipped


@dataclass(slots=True)
class Rounds:
    """The same work again and again, in turn with other processes, until a signal comes.

    `refresh` reads the settings again if they have changed.  `act` does the work once, and returns whether it
    succeeded; its argument is None where the work has to take its own turn.  `flag` is the option that says how often.
    """

    live: LiveRun
    refresh: Callable[[], None]
    act: Callable[[Permit | None], bool]
    flag: str
    _failures: int = 0
    _ticks: Ticks = field(init=False)

    def run(self) -> None:
        """Run until a signal comes; raise ClusterError where the Lease's namespace, or a permission, is missing."""
        options = self.live.options
        self._ticks = Ticks(options.interval, boottime())
        self.live.interruption.then(_leave)
        try:
            if options.lease.leader_elect and not options.dry_run:
                self._lead(candidate(self.live.client, options.lease, LEADER))
            while True:
                self._act_and_wait(None)
        except Interrupted as signal:
            _LOG.info("the loop ends: %s", signal)

    def _lead(self, leadership: Leadership) -> NoReturn:
        leads, health = self.live.telemetry.metrics.leader, self.live.telemetry.health
        try:
            while True:
                leads.set(False)
                with health.following():
                    self._wait_for(leadership)
                leads.set(True)
                self._ticks = Ticks(self.live.options.interval, boottime())
                while leadership.is_held():
                    self._act_and_wait(leadership.permit, leadership.is_held)
        finally:
            leadership.release()
            leads.set(False)

    def _wait_for(self, leadership: Leadership) -> None:
        while True:
            try:
                if leadership.acquire(math.inf):
                    return
            except (Forbidden, NotFound):
                raise  # waiting brings neither the permission nor the namespace; no process could lead without them
            except ClusterError as error:
                _LOG.warning("the lease %s cannot be had: %s", leadership.name, error)
                sleep(leadership.timing.retry)

    def _act_and_wait(self, permit: Permit | None, go_on: Callable[[], bool] = lambda: True) -> None:
        self.refresh()
        succeeds, problem = False, ""
        try:
            succeeds = self.act(permit)
        except RebalancerError as error:
            problem = str(error)
            _LOG.error("the cycle failed: %s", problem)
        self.live.telemetry.problem = problem
        self._failures = 0 if succeeds else self._failures + 1
        self.live.telemetry.health.cycle_ended(self._ticks.pause(self._failures))
        gc.collect()  # the snapshot has reference cycles, and would stay in memory until Python's next collection
        self.live.interruption.then(_leave)
        if self.live.interruption.signal:
            _leave(self.live.interruption.signal)
        self._wait(go_on)

    def _wait(self, go_on: Callable[[], bool]) -> None:
        start, skipped = self._ticks.after(boottime(), self._failures)
        left = start - boottime()
        if skipped:
            self.live.telemetry.metrics.skipped_ticks.inc(skipped)
            _LOG.warning("the cycle took longer than %s: starts skipped: %d", self.flag, skipped)
        if self._failures:
            _LOG.warning("failed cycles in a row: %d; the next one starts in %.0f s", self._failures, left)
        self.live.telemetry.next_cycle = datetime.now(UTC) + timedelta(seconds=left)
        while boottime() < start and go_on():
            time.sleep(max(0.0, min(NAP_SECONDS, start - boottime())))


def _leave(signal: str) -> NoReturn:
    raise Interrupted(f"stopped by {signal}", 0)


@dataclass(slots=True)
class Watched(Generic[T]):
    """A file by name, and the `value` that the text in force has.

    A change is seen by the content, not by the time of the file: a ConfigMap's file is a symbolic link that is swapped.
    `report` hears after each reading what is wrong with it.
    """

    what: str
    name: str
    read: Callable[[str], str]
    parse: Callable[[str], T]
    report: Callable[[str, str], None]
    value: T = field(init=False)
    _text: str = field(init=False)
    _problem: str = ""

    def __post_init__(self) -> None:
        self._text = self.read(self.name)
        self.value = self.parse(self._text)
        self.report(self.what, "")

    def refresh(self) -> None:
        """Read the file again if its content has changed; warn once of a bad one."""
        try:
            text = self.read(self.name)
            if text == self._text and not self._problem:
                return
            self.value = self.parse(text)
        except UsageError as error:
            if (problem := str(error)) != self._problem:
                self._problem = problem
                _LOG.warning("the last good %s stays in force: %s", self.what, problem)
                self.report(self.what, problem)
            return
        if text != self._text:
            _LOG.warning("the %s %s has changed: the new one is in force", self.what, self.name)
        self._text, self._problem = text, ""
        self.report(self.what, "")


@dataclass(slots=True)
class PolicyReporter:
    """Reports whether a policy, and what belongs to it, could be used as it was read: to metrics, health and Events."""

    telemetry: Telemetry
    _events: Events | None = None
    _namespace: str = ""
    _problems: dict[str, str] = field(default_factory=dict)

    def open(self, stack: ExitStack, client: Client, namespace: str) -> None:
        """Write Events until the stack ends: about this pod; outside a pod in `namespace`, under this host's name."""
        self._events, self._namespace = Events(client, reporting_instance()), namespace
        stack.callback(self._events.close, _CLOSE_SECONDS)
        if client.connection.in_cluster:
            self._namespace = "default"
            with suppress(OSError):
                self._namespace = (SERVICE_ACCOUNT / "namespace").read_text().strip() or "default"

    def report(self, what: str, problem: str) -> None:
        """Report what is wrong with a file, empty if nothing is; the last good one stays in force."""
        self._problems[what] = problem
        problem = "\n".join(filter(None, self._problems.values()))
        self.telemetry.metrics.policy_read(valid=not problem)
        self.telemetry.health.policy_problem = problem
        if problem and self._events is not None:
            note, host = f"the last good policy stays in force: {problem}", socket.gethostname()
            self._events.publish(Event(self._namespace, host, "", "Warning", "PolicyInvalid", note, "Reload"))
