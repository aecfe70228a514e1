"""When cycles start: at a fixed interval from start to start, with jitter, and with longer pauses after failures.

1. The next tick is one pause after the last tick.  The pause is the interval, doubled for each failed cycle in a row,
   up to ten intervals.
2. Ticks that passed while the cycle ran are skipped.
3. The cycle starts at the tick or up to a tenth of an interval after it.

Example, an interval of 300 s: ticks at 0, 300, 600 s; after one failure the pause is 600 s, then 1200, 2400, and 3000 s
from the fourth on.  If the cycle of tick 0 ends at 700 s, ticks 300 and 600 are skipped and the next one is at 900 s.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

#: The longest pause after failed cycles, in intervals.
MOST_INTERVALS = 10
#: How late a start may be, in intervals, so that many programs do not send requests to one API server at once.
_JITTER = 0.1


@dataclass(frozen=True, slots=True)
class Start:
    """The start of the next cycle.

    Attributes:
        at: when it starts, on the schedule's clock.
        skipped: how many starts before it were left out, since the last cycle overran.
    """

    at: float
    skipped: int = 0


class Schedule:
    """The ticks of a loop.

    Args:
        interval: seconds from start to start; more than 0.
        start: when the first cycle starts, on a clock in seconds.
        jitter: returns a random number between two bounds.
    """

    def __init__(self, interval: float, start: float, jitter: Callable[[float, float], float] = random.uniform) -> None:
        self._interval = interval
        self._tick = start
        self._jitter = jitter

    def pause(self, failures: int) -> float:
        """Return the seconds between two ticks after so many failed cycles in a row."""
        doubled = min(failures, MOST_INTERVALS)  # after a month of failures the power would not fit a float
        return self._interval * float(min(MOST_INTERVALS, 2**doubled))

    def after(self, now: float, failures: int) -> Start:
        """Return the next start.

        Args:
            now: when the last cycle ended.
            failures: failed cycles in a row, the last one included.
        """
        self._tick += self.pause(failures)
        skipped = 0
        if self._tick < now:
            skipped = int((now - self._tick) // self._interval) + 1
            self._tick += skipped * self._interval
        return Start(self._tick + self._jitter(0.0, self._interval * _JITTER), skipped)
