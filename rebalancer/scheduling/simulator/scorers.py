"""Strategies of NodeResourcesFit: what a node scores, 0 to 100, by how much of it is requested.

Source: the Kubernetes documentation, Resource Bin Packing.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add, mul
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
    return _means(columns, lambda asked, offered: (offered - asked) * (asked < offered))


def most_allocated(columns: Sequence[Column]) -> ByNode:
    """Return the weighted mean of what is requested on each node, in percent; at most 100 per resource."""
    return _means(columns, lambda asked, offered: asked * (asked < offered) + offered * (asked >= offered))


def _means(columns: Sequence[Column], counting: Callable[[ByNode, ByNode], ByNode]) -> ByNode:
    """Return the weighted means of the shares, in percent, that count of what is offered; 0 where nothing is."""
    totals, weights = [], []
    for asked, offered, weight in columns:
        totals.append(weight * (counting(asked, offered) * WHOLE // (offered + (offered <= 0))))
        weights.append(weight * (offered > 0))
    whole = reduce(add, weights)
    found: ByNode = reduce(add, totals) // (whole + (whole == 0))
    return found


def requested_to_capacity_ratio(shape: Shape) -> Scorer:
    """Return the strategy that reads scores off a shape; resources that score 0 are left out of the mean."""
    points = [(utilization, score * _SCORES_PER_POINT) for utilization, score in shape]

    def score(columns: Sequence[Column]) -> ByNode:
        means = []
        cells = zip(*(zip(*map(_listed, column[:2]), strict=True) for column in columns), strict=True)
        for pairs in cells:
            found = [_on_line(points, _utilization(*pair)) if pair[1] else 0 for pair in pairs]
            weights = [column.weight * (here > 0) for column, here in zip(columns, found, strict=True)]
            total = sum(map(mul, found, weights))
            means.append(rounded(total / sum(weights)) if any(weights) else 0)
        return np.array(means, dtype=np.int64).reshape(np.shape(columns[0].offered))

    return score


def _listed(column: ByNode) -> list[int]:
    listed: list[int] = np.atleast_1d(column).tolist()
    return listed


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
