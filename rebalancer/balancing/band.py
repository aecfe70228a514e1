"""A band around the mean, and the nodes below a line in it."""

from collections.abc import Iterable
from dataclasses import dataclass

from rebalancer.balancing.utilization import NodeUtilization, Percentages


@dataclass(frozen=True, slots=True)
class Band:
    """Percentages by resource: the mean, and the edges around it.

    For example, with a mean of 40 % and thresholds 10 below and 20 above it, the edges are 30 % and 60 %, halfway up
    is 50 %, and halfway from the lower edge to the mean is 35 %.
    """

    low: Percentages
    mean: Percentages
    high: Percentages

    def below(self, share: float) -> Percentages:
        """Return the percentages at this share of the way from the lower edge to the mean."""
        return {name: edge + share * (self.mean[name] - edge) for name, edge in self.low.items()}

    def above(self, share: float) -> Percentages:
        """Return the percentages at this share of the way from the mean to the upper edge."""
        return {name: self.mean[name] + share * (edge - self.mean[name]) for name, edge in self.high.items()}


class NodesBelow:
    """The nodes that are below a floor; `names` has their names."""

    def __init__(self, floors: Percentages, nodes: Iterable[NodeUtilization]) -> None:
        self._floors = floors
        self.names: set[str] = set()
        for node in nodes:
            self.look_at(node)

    def look_at(self, node: NodeUtilization) -> None:
        """Look again at a node that has changed."""
        if node.lacks(self._floors):
            self.names.add(node.node.name)
        else:
            self.names.discard(node.node.name)
