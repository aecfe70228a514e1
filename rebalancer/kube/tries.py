"""Until when requests may be tried (deadlines, signals, the end of a permit), and how they are tried again.

Every request that changes something checks a `Halt` first, retries included.  `Client.write` does so at the last
moment, when the connection is established and only the body is not sent yet.

A `RetryPolicy`, by its defaults and with a server that answers 503 at once, waits up to 0.5, 1, 2, 4, 8 and 8 s, each
by chance between half of that and all of it.  That makes 7 tries within 23.5 s.  There is no eighth: with one more wait
of 8 s it could begin after 31.5 s, later than `seconds` (30).  With `Retry-After: 10` a wait lasts 10 to 11 s.
"""

import logging
import math
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from rebalancer.clock import Clock, boottime
from rebalancer.errors import ClusterError, Unreachable
from rebalancer.kube.answers import Transient

T = TypeVar("T")
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point in time, in seconds on a clock, after which no request is sent any more."""

    at: float
    clock: Clock = boottime

    @classmethod
    def after(cls, seconds: float, clock: Clock = boottime) -> "Deadline":
        """Return the deadline that lies `seconds` from now."""
        return cls(clock() + seconds, clock)

    def left(self) -> float:
        """Return the seconds until then; 0 when it has passed."""
        return max(0.0, self.at - self.clock())

    def or_sooner(self, other: "Deadline | None") -> "Deadline":
        """Return the one of the two that comes first."""
        return other if other is not None and other.left() < self.left() else self


#: What all requests together may still take once the program is told to end: SIGKILL comes after 30 s by default.
ENDING_SECONDS = 20.0


class Ending(threading.Event):
    """Set once the program is told to end; from then on `ENDING_SECONDS` are left.

    It has no lock, as other events do: a signal's handler could wait for ever for one that its own thread holds.
    """

    def __init__(self) -> None:
        super().__init__()
        self._until = Deadline(math.inf)

    def set(self) -> None:
        """Let the time begin; a second time changes nothing."""
        if not self.is_set():
            self._until = Deadline.after(ENDING_SECONDS)

    def is_set(self) -> bool:
        """Return whether the time has begun."""
        return self._until.at < math.inf

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, for so many seconds at most; return whether it is."""
        until = Deadline.after(math.inf if timeout is None else timeout)
        while until.left() and not self.is_set():
            time.sleep(min(0.1, until.left()))
        return self.is_set()

    def left(self) -> float:
        """Return the seconds that are left."""
        return self._until.left()


#: Returns why no write may begin any more; empty while one may.  Called before every write, from any thread.
Permit = Callable[[], str]


def always() -> str:
    """Permit every write: for a run that does not take turns with others."""
    return ""


class Halted(ClusterError):  # noqa: N818  named like the rest of the tree
    """A signal came, the deadline has passed, or the permit ended: the request was not sent."""


class Halt:
    """Says whether a write may still begin; `signalled` may be a client's, whose requests end soon after a signal."""

    def __init__(
        self,
        seconds: float = math.inf,  # after which no write may begin
        clock: Clock = boottime,
        permit: Permit = always,  # may end the writes earlier
        began: float | None = None,  # from when the seconds count, on the clock; None for now
        signalled: Ending | None = None,
    ) -> None:
        self.deadline = Deadline((clock() if began is None else began) + seconds, clock)  # when the time is up
        self.signalled = signalled or Ending()  # set as soon as a signal has come
        self._seconds = seconds
        self._signal = ""
        self._permit = permit

    def signal(self, name: str) -> None:
        """Stop all writes that have not begun; may be called by a signal handler."""
        self._signal = self._signal or name
        self.signalled.set()

    @property
    def reason(self) -> str:
        """Why no write may begin any more; empty as long as one may."""
        return self._over() or self._permit() or self._over()  # asking for the permit may have taken long

    def _over(self) -> str:
        if self._signal:
            return f"stopped by {self._signal}"
        return "" if self.deadline.left() else f"the deadline of {self._seconds:g} s after the snapshot has passed"

    def check(self) -> None:
        """Raise `Halted` if no write may begin any more."""
        if reason := self.reason:
            raise Halted(f"not asked for: {reason}")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How failed requests are tried again: exponential waits with jitter, `Retry-After` where the server says.

    Jitter only spreads the tries of many clients: how many there are goes by the longest possible waits.
    """

    seconds: float = 30.0  # no new try begins later than this after the first
    first_wait: float = 0.5  # seconds before the second try; doubles from there
    shortest_wait: float = 0.1  # seconds that a wait lasts at least, even if the server asks for less
    longest_wait: float = 8.0  # seconds that a wait lasts at most, unless the server asks for more
    tries_unconnected: int = 4
    clock: Clock = boottime
    sleep: Callable[[float], object] | None = None
    jitter: Callable[[float, float], float] = random.uniform  # returns a random number between two bounds
    stop: threading.Event = field(default_factory=threading.Event)  # once set, nothing is tried again, and a wait ends

    def call(self, deadline: Deadline | None, request: Callable[[], T]) -> T:
        """Call a function until it raises no `Transient`, but not after the deadline; after the last try raise that."""
        end = Deadline.after(self.seconds, self.clock).or_sooner(deadline)
        seconds, waited, attempt = end.left(), 0.0, 0
        while True:
            attempt += 1
            try:
                return request()
            except Transient as failure:
                shortest, longest = self.bounds(failure, attempt)
                waited += longest  # the longest that all waits so far and the next one could take together
                wait = self.jitter(shortest, longest)
                is_over = self.stop.is_set() or waited >= seconds or longest >= end.left()
                if is_over or (not failure.connected and attempt >= self.tries_unconnected):
                    raise
                level = logging.WARNING if attempt == 1 else logging.INFO  # one line for a person, all with -v 1
                logger.log(level, "try %d failed: %s; trying again in %.1f s", attempt, failure, wait)
            self.wait(wait)

    def bounds(self, failure: Transient, attempt: int) -> tuple[float, float]:
        """Return the shortest and the longest wait after a failed attempt, counted from 1."""
        if failure.retry_after:
            asked = max(self.shortest_wait, failure.retry_after)
            return asked, asked + min(1.0, asked / 10)
        ceiling = max(self.shortest_wait, min(self.longest_wait, self.first_wait * 2.0 ** min(attempt - 1, 99)))
        return max(self.shortest_wait, ceiling / 2), ceiling

    def wait(self, seconds: float) -> None:
        """Wait before another try; raise `Unreachable` if `stop` is set meanwhile."""
        (self.sleep or self.stop.wait)(seconds)
        if self.stop.is_set():
            raise Unreachable("told to stop while waiting for another try")
