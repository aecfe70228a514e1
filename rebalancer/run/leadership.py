"""Turns: only the process that holds the Lease may evict.

1. `take` reads the Lease.  It is free if nobody holds it, or if it did not change for its duration while we watched it.
2. Unless it was given back properly, whoever takes it waits 7 s before its first write (`pause`).
3. The holder renews it in a thread, once in each retry period, and while it writes (`permit`) every 2 s.  It stops
   where the Lease is gone or another's, and after the renew deadline without a renewal.
4. Where it could not renew it for 7 s (the 2 s, and the 5 s that a request may take) it writes nothing until it can, or
   the renew deadline is over.
5. `release` gives it back, so that the next process need not wait.

All measure on their own clock, which also runs while a laptop sleeps, and the holder gives up first.  So two processes
never write at once.  Example, a loop (duration 137 s, deadline 107 s, retry 26 s): A renews at 0 s and then loses the
API server.  A stops evicting at 7 s; B, which saw that renewal, takes the Lease at 137 s or later, and waits for 7 s.

Steps 2 to 4 keep them apart also where somebody deletes or edits the Lease, whatever it says then.  Example: A renews
it at 10 s.  It is deleted, and at 11 s B creates it.  A stops with its next renewal at 12 s; were that not answered it
would stop at 17 s.  B evicts from 18 s on.

A Lease whose duration ended more than 60 s ago by the wall clock is watched for one retry period only, here 26 s.  Only
this shortcut compares wall clocks: those of the two machines must not differ by more than 60 s.
"""

import logging
import os
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from rebalancer.clock import boottime
from rebalancer.errors import ClusterError, Forbidden, UsageError
from rebalancer.kube.answers import NotFound
from rebalancer.kube.client import Client
from rebalancer.kube.leases import LONGEST_SECONDS, MOST_TRANSITIONS, Lease, Leases
from rebalancer.kube.tries import Permit, always
from rebalancer.run.interruption import sleep
from rebalancer.run.options import LeaseOptions, Options

_LOG = logging.getLogger(__name__)
REQUEST_SECONDS = 5.0  # the longest wait for a request for the Lease, seconds
_RENEW_EVERY_SECONDS = 2.0  # for so long the holder writes without renewing the Lease, seconds
#: How long after the request that last showed us as the holder we may write, seconds; and how long the next one waits.
_SURE_SECONDS = _RENEW_EVERY_SECONDS + REQUEST_SECONDS
_GIVE_BACK_SECONDS = 5.0  # how long giving the Lease back may take, seconds
#: The annotation of a Lease that its holder gave back; whoever takes the Lease removes it.
GIVEN_BACK = "kube-rebalancer/given-back"
_CLOCKS_DIFFER_BY = 60.0  # by how much two wall clocks of a cluster may differ, seconds
_JITTER_FACTOR = 1.2  # the renew deadline has to be more than this many retry periods (client-go's rule)


@dataclass(frozen=True, slots=True)
class Timing:
    """The durations of a Lease, in seconds; 1.2 x retry < deadline < duration; else it is a UsageError.

    Example: with the descheduler's 26 s, 107 s and 137 s there are four tries to renew it in time, so that a single
    lost request does no harm.
    """

    duration: float  # how long others wait after the last renewal that they saw
    deadline: float  # how long after its last renewal the holder still acts
    retry: float  # the time between two tries to take it or to renew it

    def __post_init__(self) -> None:
        if not 0 < _JITTER_FACTOR * self.retry < self.deadline < self.duration <= LONGEST_SECONDS:
            raise UsageError(
                f"{_JITTER_FACTOR} times --leader-elect-retry-period ({self.retry:g} s, more than 0) has to be less "
                f"than --leader-elect-renew-deadline ({self.deadline:g} s), and that less than "
                f"--leader-elect-lease-duration ({self.duration:g} s, and {LONGEST_SECONDS:g} s at most)"
            )


@dataclass(slots=True)
class Leadership:
    """The part of one process in taking turns; its identity is a name that only this process has.

    `wait` waits before the next try to renew a Lease, and returns whether to give up.  The `holder` is who held it when
    it was last read; empty for nobody.
    """

    leases: Leases
    timing: Timing
    identity: str
    clock: Callable[[], float] = boottime
    wall: Callable[[], datetime] = lambda: datetime.now(UTC)
    wait: Callable[[float], bool] = lambda _: True
    holder: str = ""
    _seen: Lease | None = None  # another's, as it was when we began to watch it
    _seen_at: float = 0.0  # when that was
    _mine: Lease | None = None  # ours, as it was last written
    _has_claimed: bool = False  # whether it may be ours, so that it is to be given back
    _why_lost: str = ""
    _from: float = 0.0  # the pause after taking it ends
    _until: float = 0.0  # the renew deadline; 0 while it is not held
    _sure_at: float = 0.0  # when the request was sent that last showed us as its holder
    _writing: threading.Lock = field(default_factory=threading.Lock)  # one renewal at a time
    _over: threading.Event = field(default_factory=threading.Event)  # ends the thread that renews it
    _renewing: threading.Thread | None = None

    @property
    def name(self) -> str:
        """Namespace and name of the Lease."""
        return f"{self.leases.namespace}/{self.leases.name}"

    def permit(self) -> str:
        """Return why no further write is allowed; empty while the Lease is held.

        After 2 s it is renewed first.  Where nothing answers for 7 s this waits: an API server may be starting again.
        """
        while self.is_held():
            if not self._is_sure(_RENEW_EVERY_SECONDS):
                with self._writing:
                    if not self._is_sure(_RENEW_EVERY_SECONDS):  # else another thread has renewed it meanwhile
                        self._renew()
            if self.is_held() and self._is_sure(_SURE_SECONDS):
                return ""
            if self.is_held() and self.wait(_RENEW_EVERY_SECONDS):
                return f"whether the lease {self.name} is still held could not be seen for {_SURE_SECONDS:g} s"
        return f"the lease {self.name} is not held any more{self._why_lost}"

    def is_held(self) -> bool:
        """Return whether this process holds the Lease, and has waited long enough to act."""
        return self._from <= self.clock() < self._until

    def _is_sure(self, seconds: float) -> bool:
        return self.clock() - self._sure_at < seconds

    def pause(self) -> float:
        """Return how many seconds after `take` the first write has to wait for."""
        return max(0.0, self._from - self.clock())

    def acquire(self, seconds: float, sleep: Callable[[float], None] = sleep) -> bool:
        """Wait for others so long, and then for the pause; return whether the Lease is held, and renew it from then."""
        until = self.clock() + seconds
        while not self.take():
            left = until - self.clock()
            if left <= 0:
                return False
            sleep(min(self.timing.retry, left))
        while left := self.pause():
            sleep(left)
        return self.is_held()

    def take(self) -> bool:
        """Take the Lease if it is free, and renew it from then on; return whether that succeeded (see `pause`)."""
        self._over.set()
        if self._renewing is not None:
            self._renewing.join()
        found = self.leases.read()
        self.holder = found.holder if found else ""
        if found is not None and not self._is_free(found):
            return False
        started = self.clock()
        self._has_claimed = True
        taken = self._write_claim(found)
        if taken is None:
            return False
        is_given_back = found is not None and not found.holder and GIVEN_BACK in found.annotations
        self._from = self.clock() + (0.0 if is_given_back else _SURE_SECONDS)
        self._over = threading.Event()
        self._hold(taken, started)
        _LOG.info("holding the lease %s as %s", self.name, self.identity)
        self._renewing = threading.Thread(target=self._renew_on, args=(self._over,), name="lease", daemon=True)
        self._renewing.start()
        return True

    def release(self) -> None:
        """Give the Lease back, if it is ours, so that nobody has to wait; takes a few seconds, raises no ClusterError.

        A renewal that is under way comes first, or is refused, since it names a version that is gone.
        """
        self._over.set()
        self._until = 0.0
        if not self._has_claimed:
            return
        self._has_claimed = False
        until = boottime() + _GIVE_BACK_SECONDS
        try:
            while (found := self.leases.read(max(0.0, until - boottime()))) and found.holder == self.identity:
                notes = {**found.annotations, GIVEN_BACK: self.identity}
                given = replace(found, holder="", duration=1, renewed=self.wall(), annotations=notes)
                if self.leases.write(given, max(0.0, until - boottime())):  # else it was changed meanwhile
                    return
        except NotFound:
            return
        except ClusterError as error:
            _LOG.warning("the lease %s was not given back, and is free after its duration: %s", self.name, error)

    def _is_free(self, found: Lease) -> bool:
        """Return whether a Lease may be taken: nobody holds it, or its holder has not renewed it for its duration.

        We watch it for its duration; only for one retry period if by the wall clock it ended long ago.  A Lease without
        a time, with one that is still to come, or with a duration beyond an hour is watched for our own duration: else
        one that somebody edited would stop all runs for ever.
        """
        if found.holder in ("", self.identity):
            return True
        if self._seen is None or self._seen.version != found.version:
            self._seen, self._seen_at = found, self.clock()
        watched = self.clock() - self._seen_at
        age = (self.wall() - found.renewed).total_seconds() if found.renewed else None
        if age is None or age < -_CLOCKS_DIFFER_BY or found.duration > LONGEST_SECONDS:
            return watched >= self.timing.duration
        if watched >= found.duration:
            return True
        return age > found.duration + _CLOCKS_DIFFER_BY and watched >= self.timing.retry

    def _write_claim(self, found: Lease | None) -> Lease | None:
        """Write ourselves as the holder; None where others were faster."""
        now = self.wall()
        claim = Lease(self.identity, self.timing.duration, now, now, 0, "")
        if found is not None:
            transitions = min(found.transitions + (found.holder != self.identity), MOST_TRANSITIONS)
            notes = {key: value for key, value in found.annotations.items() if key != GIVEN_BACK}
            claim = replace(claim, transitions=transitions, version=found.version, annotations=notes, kept=found.kept)
        try:
            return self.leases.write(claim)
        except NotFound as error:
            if found is not None:  # it was deleted meanwhile
                return None
            namespace = self.leases.namespace
            raise NotFound(
                f"the lease {self.name} cannot be created; create the namespace {namespace}, or name another one "
                f"(--leader-elect-resource-namespace), or let runs not wait for each other (--no-lease): {error}"
            ) from error

    def _hold(self, taken: Lease, started: float) -> None:
        self._mine, self._why_lost = taken, ""
        self.holder = self.identity
        self._until = started + self.timing.deadline
        self._sure_at = max(self._sure_at, started)

    def _renew_on(self, over: threading.Event) -> None:
        while not over.wait(self.timing.retry):
            with self._writing:
                if not self._renew():
                    return

    def _renew(self) -> bool:
        """Renew it, and return whether to go on; what is not answered changes nothing."""
        if self._over.is_set():  # by another thread, which has said why
            return False
        if self.clock() >= self._until:
            return self._lost("it could not be renewed in time")
        try:
            return self._renew_on_newest()
        except NotFound:
            return self._lost("it was deleted")
        except ClusterError as error:
            left = max(0.0, self._until - self.clock())
            _LOG.warning("the lease %s was not renewed, and is held for %.0f s more: %s", self.name, left, error)
            return True

    def _renew_on_newest(self) -> bool:
        newest = self._mine
        for _ in range(2):  # where it was changed, perhaps by our own request whose answer was lost, once more
            assert newest is not None
            started = self.clock()
            renewed = self.leases.write(replace(newest, renewed=self.wall()))
            if renewed and renewed.holder == self.identity:
                if not self._over.is_set():
                    self._hold(renewed, started)
                return True
            newest = self.leases.read()
            if self._over.is_set():
                return False
            if newest is None or newest.holder != self.identity:
                self.holder = newest.holder if newest else ""
                return self._lost(f"{self.holder or 'nobody'} holds it" if newest else "it was deleted")
        return True

    def _lost(self, why: str) -> bool:
        self._why_lost = f": {why}"
        self._until = 0.0  # before the log says so: the main thread may be about to write
        self._over.set()
        _LOG.warning("the lease %s is lost: %s", self.name, why)
        return False


LEADER = Timing(137.0, 107.0, 26.0)  # the descheduler's durations, for a loop that holds the Lease from cycle to cycle
#: For one cycle: short, so that the next run need not wait long for the Lease of a run that was killed.
ONE_CYCLE = Timing(15.0, 10.0, 2.0)


def leases_of(client: Client, lease: LeaseOptions, seconds: float = REQUEST_SECONDS) -> Leases:
    """Return the Lease of a release."""
    return Leases(client, lease.resource_namespace, lease.resource_name, seconds)


def candidate(client: Client, options: LeaseOptions, usual: Timing) -> Leadership:
    """Return the part of this process in taking turns, by the descheduler's durations where some are given."""
    given = (options.lease_duration, options.renew_deadline, options.retry_period)
    if given != (None, None, None):
        defaults = (LEADER.duration, LEADER.deadline, LEADER.retry)
        usual = Timing(*(value if value is not None else other for value, other in zip(given, defaults, strict=True)))
    seconds = min(REQUEST_SECONDS, usual.deadline / 2)
    leases = leases_of(client, options, seconds)
    identity = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4()}"  # which only this process has
    return Leadership(leases, usual, identity, wait=client.ending.wait)


@dataclass(frozen=True, slots=True)
class Turn:
    """The turn of this process."""

    permit: Permit = always
    skipped: str = ""  # why it has none
    alarm: str = ""  # what readers of a report must not overlook
    waited: bool = False  # whether it had to wait: the cluster may have changed meanwhile


@contextmanager
def turn(client: Client, options: Options, permit: Permit | None = None, doing: str = "evicting") -> Iterator[Turn]:
    """Wait for the Lease, for `lease_wait` at most, and hold it while this is entered.

    A dry run needs no turn, and a leader has it already.  Without the permission for the Lease it is our turn all the
    same, with an alarm that says what others are not kept from `doing`: the descheduler's own manifests do not grant
    it, and start this program.
    """
    lease = options.lease
    if options.dry_run or permit is not None or lease.no_lease:
        yield Turn(permit or always)
        return
    leadership, waits = candidate(client, lease, ONE_CYCLE), []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        sleep(seconds)

    with ExitStack() as stack:
        stack.callback(leadership.release)
        try:
            if leadership.acquire(lease.lease_wait, wait):
                ours = Turn(leadership.permit, waited=bool(waits))
            else:
                other = leadership.holder or "another"
                ours = Turn(skipped=f"{other} is at work: it holds the lease {leadership.name}")
        except Forbidden as error:
            alarm = f"other runs are not kept from {doing} at the same time (--no-lease says that they may): {error}"
            _LOG.warning("%s", alarm)
            ours = Turn(alarm=alarm, waited=bool(waits))
        yield ours
