"""How far a node is above its targets, in points: percent of what it has allocatable."""

from collections.abc import Mapping
from dataclasses import dataclass

#: Percentages that differ by less are equal: the noise of floating point.
TOLERANCE = 1e-9

Points = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Excess:
    """How far a node is above its targets: points by resource, of those above it only."""

    points: Points

    @property
    def total(self) -> float:
        """The sum over the resources."""
        return sum(self.points.values())

    def left(self, taken: Points) -> float:
        """Return the sum that is left once a pod has taken its usage along; 0 if that brings it within target."""
        left = 0.0
        for name, over in self.points.items():
            remains = over - taken.get(name, 0.0)
            left += remains if remains > TOLERANCE else 0.0
        return left

    def beyond(self, taken: Points) -> float:
        """Return how much more than the excess a pod takes along that brings the node within target."""
        return sum(taken.get(name, 0.0) - over for name, over in self.points.items())
