"""What ends the writes of a run: a signal, or the deadline.

Every request that sets something asks here first, a second try and one with fresh credentials too: `Client.post`
asks at the last moment, when a connection stands and only the body is missing.
"""

import math
import threading
import time

from rebalancer.errors import ClusterError
from rebalancer.kube.patience import Clock, Deadline


class Halted(ClusterError):  # noqa: N818  named like the rest of the tree
    """A signal came, or the deadline has passed: the request was not sent."""


class Halt:
    """Tells whether a write may still begin.

    Args:
        seconds: from now, after which none may.
        clock: a monotonic clock, in seconds.

    Attributes:
        deadline: when the time is up.
        signalled: set as soon as a signal has come.
    """

    def __init__(self, seconds: float = math.inf, clock: Clock = time.monotonic) -> None:
        self.deadline = Deadline.after(seconds, clock)
        self.signalled = threading.Event()
        self._seconds = seconds
        self._signal = ""

    def signal(self, name: str) -> None:
        """Let no write begin from now on; may be called by a signal's handler."""
        self._signal = self._signal or name
        self.signalled.set()

    @property
    def reason(self) -> str:
        """Why no write may begin any more; empty as long as one may."""
        if self._signal:
            return f"stopped by {self._signal}"
        return "" if self.deadline.left() else f"the deadline of {self._seconds:g} s after the snapshot has passed"

    def check(self) -> None:
        """Let a write pass.

        Raises:
            Halted: it may not begin any more.
        """
        if reason := self.reason:
            raise Halted(f"not asked for: {reason}")
