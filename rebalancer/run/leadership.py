"""Turns: only the process that holds the Lease may evict.

1. `take` reads the Lease.  It is free if nobody holds it, or if it did not change for its duration while we watched it.
2. The holder renews it in a thread, once in each retry period.  After the renew deadline without a renewal it stops.
3. Before a write it looks at the Lease, if its last look is 2 s old.  One that is gone, or another's, ends all writes.
4. `release` gives it back, so that the next process need not wait.

Both sides measure on their own clock, which also runs while a laptop sleeps, and the holder gives up first.  So two
processes never hold it at once.  Example, a loop (duration 137 s, deadline 107 s, retry 26 s): A renews at 0 s and then
loses the API server.  A stops evicting at 107 s; B, which saw that renewal, takes the Lease at 137 s or later.

A Lease whose duration ended more than 60 s ago by the wall clock is watched for one retry period only, here 26 s.  Only
this shortcut compares wall clocks: those of the two machines must not differ by more than 60 s.

People delete and edit Leases.  Whoever takes one that was missing, or before its time, may not be the only one: it
waits until the holder of before has looked again (2 s, and one request's time-out), and writes nothing until then.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from rebalancer.clock import boottime
from rebalancer.errors import ClusterError
from rebalancer.kube.answers import NotFound
from rebalancer.kube.leases import LARGEST, Lease, Leases
from rebalancer.run.lease_timing import Timing

_LOG = logging.getLogger(__name__)

#: How long giving the Lease back may take, seconds.
_GIVE_BACK_SECONDS = 5.0

#: How old a look at the Lease may be when a write begins, seconds.
LOOK_SECONDS = 2.0

#: The duration with which a Lease is given back (client-go's).
_GIVEN_BACK = 1

#: By how much two wall clocks of a cluster may differ, seconds.
_CLOCKS_DIFFER_BY = 60.0


class Leadership:
    """The part of one process in taking turns.

    Args:
        leases: the Lease.
        timing: its durations.
        identity: a name that only this process has.
        clock: seconds, like `boottime`.
        wall: the time of day.
        give_back_seconds: how long giving the Lease back may take.

    Attributes:
        holder: who held it when it was last looked at; empty for nobody.
    """

    def __init__(
        self,
        leases: Leases,
        timing: Timing,
        identity: str,
        clock: Callable[[], float] = boottime,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
        give_back_seconds: float = _GIVE_BACK_SECONDS,
    ) -> None:
        self.holder = ""
        self._give_back_seconds = give_back_seconds
        self._leases = leases
        self._timing = timing
        self._identity = identity
        self._clock = clock
        self._wall = wall
        self._seen: Lease | None = None
        self._seen_at = 0.0
        self._mine: Lease | None = None
        self._until = 0.0
        self._looked_at = 0.0
        self._settled_at = 0.0
        self._looking = threading.Lock()
        self._over = threading.Event()
        self._renewing: threading.Thread | None = None

    @property
    def name(self) -> str:
        """Namespace and name of the Lease."""
        return f"{self._leases.namespace}/{self._leases.name}"

    @property
    def retry_seconds(self) -> float:
        """Seconds between two tries to take it."""
        return self._timing.retry

    def permit(self) -> str:
        """Return why no further write is allowed; empty while the Lease is held.  Looks at it every two seconds."""
        with self._looking:
            if self.is_held() and self._clock() - self._looked_at >= LOOK_SECONDS:
                self._look()
            if not self.is_held():
                return f"the lease {self.name} is not held any more"
            if self._clock() - self._looked_at >= LOOK_SECONDS + self._leases.seconds:
                return f"the lease {self.name} could not be looked at for {LOOK_SECONDS + self._leases.seconds:g} s"
            return f"the lease {self.name} was taken before its time" if self.unsettled_seconds() else ""

    def unsettled_seconds(self) -> float:
        """Return for how many seconds another process may still act, since the Lease was taken before its time."""
        return max(0.0, self._settled_at - self._clock())

    def is_held(self) -> bool:
        """Return whether this process may act now."""
        return self._clock() < self._until

    def acquire(self, seconds: float, sleep: Callable[[float], None] = time.sleep) -> bool:
        """Wait for the Lease, for so many seconds at most, and renew it from then on; return whether it is held.

        Another process that may still act is waited for too.

        Raises:
            ClusterError: the API server cannot be reached, or the permission is missing.
        """
        until = self._clock() + seconds
        while not self.take():
            left = until - self._clock()
            if left <= 0:
                return False
            sleep(min(self._timing.retry, left))
        self.settle(sleep)
        return self.is_held()

    def settle(self, sleep: Callable[[float], None] = time.sleep) -> None:
        """Wait until no other process may act any more, if the Lease was taken before its time."""
        if seconds := self.unsettled_seconds():
            _LOG.info("waiting for %.0f s: another run may still be at work without the lease %s", seconds, self.name)
            sleep(seconds)

    def take(self) -> bool:
        """Take the Lease if it is free, and renew it from then on; return whether it is held.

        Raises:
            ClusterError: the API server cannot be reached, or the permission is missing.
        """
        self._end_renewing()
        found = self._leases.read()
        self.holder = found.holder if found else ""
        if found is not None and not self._is_free(found):
            return False
        started = self._clock()
        is_early = found is None or not self._is_in_time(found)
        claim = self._claim(found)
        taken = self._leases.create(claim) if found is None else self._leases.update(claim)
        if taken is None:
            return False
        self._settled_at = self._clock() + LOOK_SECONDS + self._leases.seconds if is_early else 0.0
        self._hold(taken, started)
        self._begin_to_renew()
        return True

    def release(self) -> None:
        """Give the Lease back, if it is held, so that nobody has to wait; takes a few seconds, raises no ClusterError.

        A renewal that is under way is waited for: giving back a version that it replaces would fail.
        """
        held, until = self.is_held(), boottime() + self._give_back_seconds
        self._over.set()
        if self._renewing is not None:
            self._renewing.join(self._give_back_seconds)
        self._until = 0.0
        if not held or self._mine is None:
            return
        try:
            if not self._give_back(self._mine, until):
                newest = self._leases.read(max(0.0, until - boottime()))
                if newest is not None and newest.holder == self._identity:  # our own renewal, whose answer was lost
                    self._give_back(newest, until)
        except ClusterError as error:
            _LOG.warning("the lease %s was not given back, and is free after its duration: %s", self.name, error)

    def _give_back(self, held: Lease, until: float) -> bool:
        """Return whether the version that is held could be given back."""
        given = replace(held, holder="", duration=_GIVEN_BACK, renewed=self._wall())
        return self._leases.update(given, seconds=max(0.0, until - boottime())) is not None

    def _look(self) -> None:
        """Look at the Lease once; whoever else holds it, or its absence, ends the turn.  No answer changes nothing."""
        try:
            found = self._leases.read(LOOK_SECONDS)
        except ClusterError as error:
            _LOG.warning("the lease %s cannot be looked at: %s", self.name, error)
            return
        if found is None or found.holder != self._identity:
            self._lost(f"{found.holder or 'nobody'} holds it" if found else "it was deleted")
            return
        self._looked_at = self._clock()

    def _is_free(self, found: Lease) -> bool:
        """Return whether a Lease may be taken: nobody holds it, or its holder has not renewed it for its duration.

        We watch it for its duration; only for one retry period if by the wall clock it ended long ago.
        """
        if found.holder in ("", self._identity):
            return True
        if self._seen is None or self._seen.version != found.version:
            self._seen, self._seen_at = found, self._clock()
        watched = self._clock() - self._seen_at
        if watched >= found.duration:
            return True
        age = (self._wall() - found.renewed).total_seconds() if found.renewed else 0.0
        return age > found.duration + _CLOCKS_DIFFER_BY and watched >= self._timing.retry

    def _is_in_time(self, found: Lease) -> bool:
        """Return whether nobody else can act any more: it was given back, or not renewed for our duration and its own.

        An empty holder alone says little: someone may have edited the Lease.
        """
        if not found.holder and found.duration <= _GIVEN_BACK:
            return True
        is_watched = self._seen is not None and self._seen.version == found.version
        return is_watched and self._clock() - self._seen_at >= max(found.duration, self._timing.duration)

    def _claim(self, found: Lease | None) -> Lease:
        now = self._wall()
        transitions = min(LARGEST, found.transitions + (found.holder != self._identity)) if found else 0
        version = found.version if found else ""
        return Lease(self._identity, self._timing.duration, now, now, transitions, version)

    def _hold(self, taken: Lease, started: float) -> None:
        self._mine = taken
        self.holder = self._identity
        self._until = started + self._timing.deadline
        self._looked_at = started

    def _begin_to_renew(self) -> None:
        _LOG.info("holding the lease %s as %s", self.name, self._identity)
        self._over = threading.Event()
        self._renewing = threading.Thread(target=self._renew_on, args=(self._over,), name="lease", daemon=True)
        self._renewing.start()

    def _end_renewing(self) -> None:
        self._over.set()
        if self._renewing is not None:
            self._renewing.join()
            self._renewing = None

    def _renew_on(self, over: threading.Event) -> None:
        while not over.wait(self._timing.retry):
            if not self._renew():
                return

    def _renew(self) -> bool:
        """Renew once; return whether to go on."""
        if not self.is_held():
            return self._lost("it could not be renewed in time")
        try:
            return self._renew_on_newest()
        except NotFound:
            return self._lost("it was deleted")
        except ClusterError as error:
            _LOG.warning(
                "the lease %s was not renewed, and is held for %.0f s more: %s", self.name, self._left(), error
            )
            return True

    def _renew_on_newest(self) -> bool:
        assert self._mine is not None
        started = self._clock()
        renewed = self._leases.update(replace(self._mine, renewed=self._wall()))
        if renewed is None:  # it was changed: by another holder, or by our own request whose answer was lost
            newest = self._leases.read()
            if newest is None or newest.holder != self._identity:
                return self._lost(f"{newest.holder if newest else 'nobody'} holds it")
            started = self._clock()
            renewed = self._leases.update(replace(newest, renewed=self._wall()))
        if renewed is not None:
            self._mine = renewed  # also at the end: giving back an older version would fail
            if not self._over.is_set():
                self._hold(renewed, started)
        return True

    def _lost(self, why: str) -> bool:
        _LOG.warning("the lease %s is lost: %s", self.name, why)
        self._until = 0.0
        return False

    def _left(self) -> float:
        return max(0.0, self._until - self._clock())
