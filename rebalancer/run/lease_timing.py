"""The durations of a Lease, the clock that measures them, and the name of this process.

The rule is 1.2 x retry < deadline < duration.  Example (the descheduler's 26 s, 107 s and 137 s):

1. The holder tries to renew every 26 s, so four times within 107 s; a single lost request does no harm.
2. 107 s after its last renewal the holder stops evicting.
3. Another process takes the Lease 137 s after the last renewal that it saw: 30 s later at least.
"""

import os
import socket
import uuid
from dataclasses import dataclass

from rebalancer.errors import UsageError
from rebalancer.kube.leases import LONGEST_SECONDS

#: The renew deadline has to be more than this many retry periods (client-go's rule).
_JITTER_FACTOR = 1.2


def new_identity() -> str:
    """Return a name that only this process has: host name, process id and a random UUID."""
    return f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4()}"


@dataclass(frozen=True, slots=True)
class Timing:
    """The durations of a Lease, in seconds.

    Attributes:
        duration: how long others wait after the last renewal that they saw.
        deadline: how long after its last renewal the holder still acts.
        retry: the time between two tries to take it or to renew it.

    Raises:
        UsageError: `retry` is not above 0, `duration` is above an hour, or the rule of the module does not hold.
    """

    duration: float
    deadline: float
    retry: float

    def __post_init__(self) -> None:
        if self.duration > LONGEST_SECONDS:
            raise UsageError(f"--leader-elect-lease-duration ({self.duration:g} s) is more than {LONGEST_SECONDS:g} s")
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
