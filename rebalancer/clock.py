"""The one clock by which deadlines, Leases and the freshness of what was seen are measured: it counts sleep too.

`time.monotonic` stands still while a laptop sleeps.  A plan of before that would count as fresh, and a deadline would
end when nobody expects it any more.
"""

import time
from collections.abc import Callable

#: Seconds that never go back; only differences mean something.
Clock = Callable[[], float]

#: macOS has no CLOCK_BOOTTIME; there CLOCK_MONOTONIC counts sleep, which `time.monotonic` does not.
_COUNTS_SLEEP = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boottime() -> float:
    """Return the seconds on a clock that also runs while the machine sleeps."""
    return time.clock_gettime(_COUNTS_SLEEP)
