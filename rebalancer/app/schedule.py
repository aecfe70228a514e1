"""When cycles start: from start to start, with jitter, and with longer pauses after failures."""

import random
from collections.abc import Callable
from dataclasses import dataclass

#: The longest pause after failed cycles, in intervals.
MOST_INTERVALS = 10
#: By how much of an interval a start may be late, so that many programs do not ask one API server at once.
_JITTER = 0.1


@dataclass(frozen=True, slots=True)
class Start:
    """A cycle to come.

    Attributes:
        at: when it starts, on the schedule's clock.
        skipped: starts before it that fell into a cycle that overran.
    """

    at: float
    skipped: int = 0


class Schedule:
    """The ticks of a loop.

    Args:
        interval: seconds from start to start; more than 0.
        start: of the first cycle, on a clock in seconds.
        jitter: a number between two bounds, by chance.
    """

    def __init__(self, interval: float, start: float, jitter: Callable[[float, float], float] = random.uniform) -> None:
        self._interval = interval
        self._tick = start
        self._jitter = jitter

    def pause(self, failures: int) -> float:
        """Return the seconds between two ticks after so many failed cycles in a row."""
        doubled = min(failures, MOST_INTERVALS)  # 2 ** a month of failures does not fit a float
        return self._interval * float(min(MOST_INTERVALS, 2**doubled))

    def after(self, now: float, failures: int) -> Start:
        """Return the next start, when a cycle has ended at `now` with so many failed ones in a row, itself included.

        Ticks that have passed meanwhile are skipped; none of them is made up for.
        """
        self._tick += self.pause(failures)
        skipped = 0
        if self._tick < now:
            skipped = int((now - self._tick) // self._interval) + 1
            self._tick += skipped * self._interval
        return Start(self._tick + self._jitter(0.0, self._interval * _JITTER), skipped)
