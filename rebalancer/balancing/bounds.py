"""When nodes are nearly idle, and when they are too full."""

from collections.abc import Iterable
from dataclasses import dataclass

from rebalancer.balancing.utilization import NodeUtilization, Percentages, around_mean


@dataclass(frozen=True, slots=True)
class Bounds:
    """Percentages by resource.

    Attributes:
        low: at or below all of these a node is underutilized.
        high: above any of these it is overutilized.
        deviation: whether both are distances from the mean of all nodes.
    """

    low: Percentages
    high: Percentages
    deviation: bool = False

    def of(self, nodes: Iterable[NodeUtilization]) -> tuple[Percentages, Percentages]:
        """Return both bounds for these nodes, as shares of each node."""
        return around_mean(nodes, self.low, self.high) if self.deviation else (self.low, self.high)
