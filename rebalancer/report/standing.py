"""How far a run is, as a line for the person who waits for it."""

from collections.abc import Callable
from dataclasses import dataclass

_MINUTE = 60


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a run is.

    Attributes:
        doing: what it does, like `reading pods`.
        done: how many so far; None if nothing is counted.
        of: of how many; None if that is not known.
        at_most: an upper bound, if `of` is not known.
        left: returns the seconds until the deadline.
    """

    doing: str
    done: int | None = None
    of: int | None = None
    at_most: int | None = None
    left: Callable[[], float] | None = None

    @property
    def words(self) -> str:
        """The line: `reading pods: 1,500 of 3,000`."""
        return self.doing + self._count() + self._deadline()

    def _count(self) -> str:
        if self.done is None:
            return ""
        if self.of is not None:
            return f": {self.done:,} of {self.of:,}"
        return f": {self.done:,}" + (f", at most {self.at_most:,}" if self.at_most is not None else "")

    def _deadline(self) -> str:
        if self.left is None:
            return ""
        minutes, seconds = divmod(int(self.left()), _MINUTE)
        return f"; {minutes}:{seconds:02} left"
