"""What ends the writes of a run: a signal, the deadline, or a permit that has ended, like a lost Lease.

Every request that changes something asks here first, also a second try and one with fresh credentials: `Client.post`
asks at the last moment, when a connection stands and only the body is missing.
"""

import math
import threading
import time
from collections.abc import Callable

from rebalancer.errors import ClusterError
from rebalancer.kube.deadline import Clock, Deadline

#: Says why nothing more may be asked for; empty while it may.  Asked before every write, from any thread.
Permit = Callable[[], str]


def always() -> str:
    """Permit everything: a run that takes turns with no other."""
    return ""


class Halted(ClusterError):  # noqa: N818  named like the rest of the tree
    """A signal came, the deadline has passed, or the permit ended: the request was not sent."""


class Halt:
    """Says whether a write may still begin.

    Args:
        seconds: after which none may.
        clock: a monotonic clock, in seconds.
        permit: may end the writes too.
        began: from when the seconds count, on the clock; None for now.

    Attributes:
        deadline: when the time is up.
        signalled: set as soon as a signal has come.
    """

    def __init__(
        self,
        seconds: float = math.inf,
        clock: Clock = time.monotonic,
        permit: Permit = always,
        began: float | None = None,
    ) -> None:
        self.deadline = Deadline((clock() if began is None else began) + seconds, clock)
        self.signalled = threading.Event()
        self._seconds = seconds
        self._signal = ""
        self._permit = permit

    def signal(self, name: str) -> None:
        """Let no write begin from now on; may be called by a signal's handler."""
        self._signal = self._signal or name
        self.signalled.set()

    @property
    def reason(self) -> str:
        """Why no write may begin any more; empty as long as one may."""
        if self._signal:
            return f"stopped by {self._signal}"
        if not self.deadline.left():
            return f"the deadline of {self._seconds:g} s after the snapshot has passed"
        return self._permit()

    def check(self) -> None:
        """Let a write pass.

        Raises:
            Halted: it may not begin any more.
        """
        if reason := self.reason:
            raise Halted(f"not asked for: {reason}")
