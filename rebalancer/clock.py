"""The one clock by which deadlines, Leases and the freshness of what was seen are measured: it counts sleep too.

`time.monotonic` stands still while a laptop sleeps.  A plan of before that would count as fresh, and a deadline would
end when nobody expects it any more.
"""

import time
from collections.abc import Callable

#: Seconds that never go back; only differences mean something.
Clock = Callable[[], float]


class LaterClock:
    """The later of two clocks, for systems without `CLOCK_BOOTTIME`: the wall clock counts sleep, but may be set.

    Where the wall clock is set forward, time seems to have passed: then deadlines end too early, never too late.

    Args:
        steady: a clock that nobody can set, in seconds.
        wall: the time of day, in seconds.
    """

    def __init__(self, steady: Clock = time.monotonic, wall: Clock = time.time) -> None:
        self._steady, self._wall = steady, wall
        self._began = (steady(), wall())
        self._latest = 0.0

    def __call__(self) -> float:
        """Return the seconds since the first call by whichever clock shows more; never less than before."""
        passed = max(self._steady() - self._began[0], self._wall() - self._began[1])
        self._latest = max(self._latest, passed)
        return self._latest


#: Seconds on a clock that also runs while the machine sleeps.
boottime: Clock = (lambda: time.clock_gettime(time.CLOCK_BOOTTIME)) if hasattr(time, "CLOCK_BOOTTIME") else LaterClock()
