"""Deadlines, and what ends the writes of a run: a signal, its deadline, or a permit that has ended, like a lost Lease.

Every request that changes something checks this first, retries included.  `Client.write` checks it at the last moment,
when the connection is established and only the body is not sent yet.
"""

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass

from rebalancer.clock import Clock, boottime
from rebalancer.errors import ClusterError


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point in time after which no request is sent any more.

    Attributes:
        at: seconds on `clock`.
        clock: in seconds, like `boottime`.
    """

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


#: Returns why no write may begin any more; empty while one may.  Called before every write, from any thread.
Permit = Callable[[], str]


def always() -> str:
    """Permit every write: for a run that does not take turns with others."""
    return ""


class Halted(ClusterError):  # noqa: N818  named like the rest of the tree
    """A signal came, the deadline has passed, or the permit ended: the request was not sent."""


class Halt:
    """Says whether a write may still begin.

    Args:
        seconds: after which no write may begin.
        clock: in seconds, like `boottime`.
        permit: may end the writes earlier.
        began: from when the seconds count, on the clock; None for now.
        signalled: see the attribute; that of a client makes its requests end soon after a signal.

    Attributes:
        deadline: when the time is up.
        signalled: set as soon as a signal has come.
    """

    def __init__(
        self,
        seconds: float = math.inf,
        clock: Clock = boottime,
        permit: Permit = always,
        began: float | None = None,
        signalled: threading.Event | None = None,
    ) -> None:
        self.deadline = Deadline((clock() if began is None else began) + seconds, clock)
        self.signalled = signalled or threading.Event()
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
        """Make sure that a write may begin.

        Raises:
            Halted: no write may begin any more.
        """
        if reason := self.reason:
            raise Halted(f"not asked for: {reason}")
