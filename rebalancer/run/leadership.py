"""Turns: only the process that holds the Lease may evict.

1. `take` reads the Lease.  It is free if nobody holds it, or if it did not change for its duration while we watched it.
2. The holder renews it in a thread, once in each retry period.  After the renew deadline without a renewal it stops.
3. `release` gives it back, so that the next process need not wait.

Both sides measure on their own clock, which also runs while a laptop sleeps, and the holder gives up first.  So two
processes never hold it at once.  Example, a loop (duration 137 s, deadline 107 s, retry 26 s): A renews at 0 s and then
loses the API server.  A stops evicting at 107 s; B, which saw that renewal, takes the Lease at 137 s or later.

A Lease whose duration ended more than 60 s ago by the wall clock is watched for one retry period only, here 26 s.  Only
this shortcut compares wall clocks: those of the two machines must not differ by more than 60 s.
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
from rebalancer.kube.leases import Lease, Leases
from rebalancer.run.lease_timing import Timing

_LOG = logging.getLogger(__name__)

#: How long giving the Lease back may take, seconds.
_GIVE_BACK_SECONDS = 5.0

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
        """Return why no further write is allowed; empty while the Lease is held."""
        return "" if self.is_held() else f"the lease {self.name} is not held any more"

    def is_held(self) -> bool:
        """Return whether this process may act now."""
        return self._clock() < self._until

    def acquire(self, seconds: float, sleep: Callable[[float], None] = time.sleep) -> bool:
        """Wait for the Lease, for so many seconds at most, and renew it from then on; return whether it is held.

        Raises:
            ClusterError: the API server cannot be reached, or the permission is missing.
        """
        until = self._clock() + seconds
        while not self.take():
            left = until - self._clock()
            if left <= 0:
                return False
            sleep(min(self._timing.retry, left))
        return True

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
        claim = self._claim(found)
        taken = self._leases.create(claim) if found is None else self._leases.update(claim)
        if taken is None:
            return False
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
            given = replace(self._mine, holder="", duration=1, renewed=self._wall())
            self._leases.update(given, seconds=max(0.0, until - boottime()))
        except ClusterError as error:
            _LOG.warning("the lease %s was not given back, and is free after its duration: %s", self.name, error)

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

    def _claim(self, found: Lease | None) -> Lease:
        now = self._wall()
        transitions = found.transitions + (found.holder != self._identity) if found else 0
        version = found.version if found else ""
        return Lease(self._identity, self._timing.duration, now, now, transitions, version)

    def _hold(self, taken: Lease, started: float) -> None:
        self._mine = taken
        self.holder = self._identity
        self._until = started + self._timing.deadline

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
        if renewed is not None and not self._over.is_set():
            self._hold(renewed, started)
        return True

    def _lost(self, why: str) -> bool:
        _LOG.warning("the lease %s is lost: %s", self.name, why)
        self._until = 0.0
        return False

    def _left(self) -> float:
        return max(0.0, self._until - self._clock())
