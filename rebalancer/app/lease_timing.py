"""The durations of a Lease, the clock that they are told on, and who this process is."""

import os
import socket
import time
import uuid
from dataclasses import dataclass

from rebalancer.errors import UsageError

#: The least ratio of renew deadline and retry period (client-go's rule).
_JITTER_FACTOR = 1.2


def boottime() -> float:
    """Return seconds on a clock that nobody sets and that goes on while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def new_identity() -> str:
    """Return a name for this process that no other one has: host, process and chance."""
    return f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4()}"


@dataclass(frozen=True, slots=True)
class Timing:
    """The durations of a Lease, in seconds.

    Attributes:
        duration: how long others wait after the last renewal that they saw.
        deadline: how long after its last renewal the holder still acts.
        retry: between two tries, to take it or to renew it.

    Raises:
        UsageError: they do not go together.
    """

    duration: float
    deadline: float
    retry: float

    def __post_init__(self) -> None:
        if self.retry <= 0:
            raise UsageError("--leader-elect-retry-period has to be more than 0")
        if self.deadline <= _JITTER_FACTOR * self.retry:
            raise UsageError(
                f"--leader-elect-renew-deadline ({self.deadline:g} s) has to be more than {_JITTER_FACTOR} times "
                f"--leader-elect-retry-period ({self.retry:g} s)"
            )
        if self.duration <= self.deadline:
            raise UsageError(
                f"--leader-elect-lease-duration ({self.duration:g} s) has to be more than "
                f"--leader-elect-renew-deadline ({self.deadline:g} s)"
            )
