"""Strategies of NodeResourcesFit: what a node scores, 0 to 100, by how much of it is requested.

Source: the Kubernetes documentation, Resource Bin Packing.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rebalancer.scheduling.simulator.nodes import WHOLE, ByNode, rounded

#: Points of a shape: utilization in percent, and the score there from 0 to 10.
Shape = Sequence[tuple[int, int]]
_SCORES_PER_POINT = 10


class Column(NamedTuple):
    """One resource: what is requested with the pod and what is offered, node by node, and how much it counts."""

    asked: ByNode
    offered: ByNode
    weight: int


#: Scores nodes by the columns of the resources; a resource that a node does not offer does not count there.
Scorer = Callable[[Sequence[Column]], ByNode]


def least_allocated(columns: Sequence[Column]) -> ByNode:
    """Return the weighted mean of what is left on each node, in percent."""
    return _means(columns, lambda asked, offered: np.maximum(offered - asked, 0) * WHOLE // np.maximum(offered, 1))


def most_allocated(columns: Sequence[Column]) -> ByNode:
    """Return the weighted mean of what is requested on each node, in percent; at most 100 per resource."""
    return _means(columns, lambda asked, offered: np.minimum(asked, offered) * WHOLE // np.maximum(offered, 1))


def _means(columns: Sequence[Column], points: Callable[[ByNode, ByNode], ByNode]) -> ByNode:
    """Return the weighted means of the points that nodes get for what is asked and offered, 0 where nothing is."""
    totals = sum(weight * points(asked, offered) for asked, offered, weight in columns)
    counted = sum(weight * (offered > 0) for _, offered, weight in columns)
    found: ByNode = totals // np.maximum(counted, 1)
    return found


def requested_to_capacity_ratio(shape: Shape) -> Scorer:
    """Return the strategy that reads scores off a shape; resources that score 0 are left out of the mean."""
    points = [(utilization, score * _SCORES_PER_POINT) for utilization, score in shape]

    def score(columns: Sequence[Column]) -> ByNode:
        totals = [0] * len(columns[0].offered)
        weights = totals[:]
        for column in columns:
            pairs = zip(column.asked.tolist(), column.offered.tolist(), strict=True)
            for place, (asked, offered) in enumerate(pairs):
                here = _on_line(points, _utilization(asked, offered)) if offered else 0
                totals[place] += max(here, 0) * column.weight
                weights[place] += column.weight if here > 0 else 0
        means = (rounded(total / weight) if weight else 0 for total, weight in zip(totals, weights, strict=True))
        return np.fromiter(means, dtype=np.int64, count=len(totals))

    return score


def _utilization(asked: int, offered: int) -> int:
    return WHOLE if asked > offered else asked * WHOLE // offered


def _on_line(points: Shape, utilization: int) -> int:
    before = points[0]
    for at, score in points:
        if utilization <= at:
            if at == before[0]:
                return score
            return before[1] + _quotient((score - before[1]) * (utilization - before[0]), at - before[0])
        before = (at, score)
    return before[1]


def _quotient(dividend: int, divisor: int) -> int:
    """Return a quotient rounded towards zero."""
    whole = abs(dividend) // abs(divisor)
    return whole if (dividend < 0) == (divisor < 0) else -whole
