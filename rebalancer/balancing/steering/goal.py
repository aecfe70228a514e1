"""The goal of steering: every node within its band or target; and what a node costs while it is not.

A node outside its band costs the points by which it is outside, summed over the resources.  The band here is narrower
than the real one by a margin: a node is brought in so far that small changes of its usage do not take it out again.
But only nodes outside the real band are worth a move; so there is a gap between what starts moves and what ends them.
Distance from the mean also costs a little.  So of two moves with the same gain the one to the emptier node is made, and
a plan does not get stuck where no single move helps.

An example: the band is 30 to 60 % around a mean of 40 %, the margin 2 points.  A node at 63 % costs 5, one at 59 %
costs 1 but starts nothing, one at 57 % costs 0 (without what the distance from the mean costs).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from rebalancer.balancing.band import Band
from rebalancer.balancing.utilization import TOLERANCE

#: How full a node is, in percent, in the order of the goal's resources.
Fill = Sequence[float]
#: Many fills, or what many pods use: one array for each of the goal's resources, all of the same shape.
Fills = NDArray[np.float64]
#: A number for each of them.
Costs = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: How far inside their band nodes are brought, as a multiple of the least gain of a move.
MARGIN = 2.0
#: What a squared point of distance from the mean costs.  With more, plans take more moves; with none, they end with a
#: node or two outside that no single move brings in.
_EVENNESS = 0.003


@dataclass(frozen=True, slots=True)
class Goal:
    """Edges by resource, in one order.

    Attributes:
        names: the resources.
        low: below which a node is outside; 0 where only targets count.
        high: above which it is outside.
        inner_low: what nodes are brought up to.
        inner_high: what nodes are brought down to.
        mean: of all nodes.
    """

    names: tuple[str, ...]
    low: Fill
    high: Fill
    inner_low: Fill
    inner_high: Fill
    mean: Fill

    @classmethod
    def of(cls, band: Band, margin: float) -> "Goal":
        """Return the goal of a band; where the edges are not distances from the mean, the lower one does not count.

        Args:
            band: where nodes should be; resources that no node offers are left out.
            margin: how far inside nodes are brought, in points, but not beyond the mean.
        """
        names, deviation = tuple(sorted(band.mean)), band.deviation
        low = [band.low[name] if deviation else 0.0 for name in names]
        high, mean = [band.high[name] for name in names], [band.mean[name] for name in names]
        inner_high = [max(h - margin, min(m, h)) for h, m in zip(high, mean, strict=True)]
        inner_low = [min(edge + margin, m) if deviation else 0.0 for edge, m in zip(low, mean, strict=True)]
        return cls(names, low, high, inner_low, inner_high, mean)

    def highest(self, fill: Fill) -> float:
        """Return by how many points a node is above the mean in the resource where that is most; below it: negative."""
        return max(each - mean for each, mean in zip(fill, self.mean, strict=True))

    def above(self, fill: Fill) -> float:
        """Return by how many points a node is above the narrower band, summed up: what it has to give."""
        return sum(max(0.0, each - high) for each, high in zip(fill, self.inner_high, strict=True))

    def is_over(self, fill: Fill) -> bool:
        """Return whether a node is above its band in some resource."""
        return any(each > edge + TOLERANCE for each, edge in zip(fill, self.high, strict=True))

    def is_below(self, fill: Fill) -> bool:
        """Return whether a node is below its band in some resource."""
        return any(each < edge - TOLERANCE for each, edge in zip(fill, self.low, strict=True))

    def over(self, fills: Fills) -> Mask:
        """Return for each of some fills whether it is above the band in some resource."""
        over: Mask = np.any([each > edge + TOLERANCE for each, edge in zip(fills, self.high, strict=True)], axis=0)
        return over

    def below(self, fills: Fills) -> Mask:
        """Return for each of some fills whether it is below the band in some resource."""
        below: Mask = np.any([each < edge - TOLERANCE for each, edge in zip(fills, self.low, strict=True)], axis=0)
        return below

    def outside(self, fills: Fills) -> Costs:
        """Return for each of some fills by how many points it is outside the narrower band, summed up."""
        return reduce(
            add,
            [
                np.maximum(np.maximum(each - high, low - each), 0.0)
                for each, low, high in zip(fills, self.inner_low, self.inner_high, strict=True)
            ],
        )

    def unevenness(self, fills: Fills) -> Costs:
        """Return for each of some fills what its distance from the mean costs."""
        squares: Costs = reduce(add, [np.square(each - mean) for each, mean in zip(fills, self.mean, strict=True)])
        return _EVENNESS * squares
