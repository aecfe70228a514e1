"""How far a node is above its targets, in points: percent of what it has allocatable."""

from collections.abc import Mapping
from dataclasses import dataclass

from rebalancer.cluster.resources import PODS

#: Smaller differences of percentages are floating-point noise.
TOLERANCE = 1e-9

Points = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Excess:
    """How far a node is above its targets: points by resource, only for those above their target."""

    points: Points

    @property
    def total(self) -> float:
        """The sum over the resources."""
        return sum(self.points.values())

    @property
    def beside_pods(self) -> float:
        """The sum over the resources of which pods use more or less: all but the number of pods."""
        return self.total - self.points.get(PODS, 0.0)

    @property
    def of_pods(self) -> bool:
        """Whether there are too many pods."""
        return PODS in self.points

    def left(self, taken: Points) -> float:
        """Return the sum that stays above target when a pod has gone; 0 if the node is within target then."""
        left = 0.0
        for name, over in self.points.items():
            remains = over - taken.get(name, 0.0)
            left += remains if remains > TOLERANCE else 0.0
        return left

    def beyond(self, taken: Points) -> float:
        """Return how much more than the excess a pod takes, if it brings the node within target."""
        return sum(taken.get(name, 0.0) - over for name, over in self.points.items())
