"""How long to go on, and how long to wait between two tries."""

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import tenacity

from rebalancer.errors import Unreachable
from rebalancer.kube.answers import Transient

logger = logging.getLogger(__name__)

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point on a monotonic clock after which nothing more is asked for.

    Attributes:
        at: seconds on `clock`.
        clock: a monotonic clock, in seconds.
    """

    at: float
    clock: Clock = time.monotonic

    @classmethod
    def after(cls, seconds: float, clock: Clock = time.monotonic) -> "Deadline":
        """Return the deadline that lies `seconds` from now."""
        return cls(clock() + seconds, clock)

    def left(self) -> float:
        """Return the seconds until then; 0 when it has passed."""
        return max(0.0, self.at - self.clock())

    def or_sooner(self, other: "Deadline | None") -> "Deadline":
        """Return the one of the two that comes first."""
        return other if other is not None and other.left() < self.left() else self


@dataclass(frozen=True, slots=True)
class Patience:
    """How failed requests are tried again: exponential waits with jitter, `Retry-After` where the server says.

    Attributes:
        seconds: no new try begins later than this after the first.
        first_wait: seconds before the second try; doubles from there.
        longest_wait: seconds that a wait of our own choosing never exceeds.
        tries_unconnected: tries when not even a connection comes about: a server that is not there is
            reported within seconds.
        clock: a monotonic clock, in seconds.
        sleep: waits for that many seconds; None waits so long or until `stop` is set.
        jitter: a number between two bounds, by chance.
        stop: once set, nothing is tried again, and a wait ends.
    """

    seconds: float = 30.0
    first_wait: float = 0.5
    longest_wait: float = 8.0
    tries_unconnected: int = 4
    clock: Clock = time.monotonic
    sleep: Callable[[float], object] | None = None
    jitter: Callable[[float, float], float] = random.uniform
    stop: threading.Event = field(default_factory=threading.Event)

    def tries(self, deadline: Deadline | None = None) -> tenacity.Retrying:
        """Return what calls a function until it raises no `Transient`, or raises the last one."""
        last = Deadline.after(self.seconds, self.clock).or_sooner(deadline)
        return tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(Transient),
            wait=self._wait,
            stop=partial(self._is_over, last),
            sleep=self._sleep,
            before_sleep=_log_next_try,
            reraise=True,
        )

    def _wait(self, state: tenacity.RetryCallState) -> float:
        retry_after = _failure(state).retry_after
        if retry_after:
            return retry_after + self.jitter(0.0, min(1.0, retry_after / 10))
        ceiling = min(self.longest_wait, self.first_wait * 2.0 ** (state.attempt_number - 1))
        return self.jitter(ceiling / 2, ceiling)

    def _sleep(self, seconds: float) -> None:
        (self.sleep or self.stop.wait)(seconds)
        if self.stop.is_set():
            raise Unreachable("told to stop while waiting for another try")

    def _is_over(self, last: Deadline, state: tenacity.RetryCallState) -> bool:
        if self.stop.is_set() or state.upcoming_sleep >= last.left():
            return True
        return not _failure(state).connected and state.attempt_number >= self.tries_unconnected


def _failure(state: tenacity.RetryCallState) -> Transient:
    failure = state.outcome.exception() if state.outcome else None
    assert isinstance(failure, Transient)
    return failure


def _log_next_try(state: tenacity.RetryCallState) -> None:
    logger.warning(
        "try %d failed: %s; trying again in %.1f s",
        state.attempt_number,
        _failure(state),
        state.upcoming_sleep,
    )
