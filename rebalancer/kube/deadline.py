"""A point in time after which no request is sent any more."""

from dataclasses import dataclass

from rebalancer.clock import Clock, boottime


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
