"""Strategies of NodeResourcesFit: what a node scores, 0 to 100, by how much of it is requested.

Source: the Kubernetes documentation, Resource Bin Packing.
"""

from collections.abc import Callable, Sequence
from operator import add
from typing import NamedTuple

from rebalancer.scheduling.simulator.arithmetic import WHOLE, quotient, rounded

#: Points of a shape: utilization in percent, and the score there from 0 to 10.
Shape = Sequence[tuple[int, int]]
_SCORES_PER_POINT = 10


class Column(NamedTuple):
    """One resource: what is requested with the pod and what is offered, node by node, and how much it counts."""

    asked: Sequence[int]
    offered: Sequence[int]
    weight: int


#: Scores nodes by the columns of the resources; a resource that a node does not offer does not count there.
Scorer = Callable[[Sequence[Column]], list[int]]


def least_allocated(columns: Sequence[Column]) -> list[int]:
    """Return the weighted mean of what is left on each node, in percent."""
    return _means(columns, lambda asked, offered: max(offered - asked, 0) * WHOLE // offered)


def most_allocated(columns: Sequence[Column]) -> list[int]:
    """Return the weighted mean of what is requested on each node, in percent; at most 100 per resource."""
    return _means(columns, lambda asked, offered: min(asked, offered) * WHOLE // offered)


def _means(columns: Sequence[Column], score: Callable[[int, int], int]) -> list[int]:
    totals = [0] * len(columns[0].offered)
    weights = totals
    for asked, offered, weight in columns:
        points = [score(a, o) * weight if o else 0 for a, o in zip(asked, offered, strict=True)]
        totals = list(map(add, totals, points))
        weights = [counted + (weight if o else 0) for counted, o in zip(weights, offered, strict=True)]
    return [total // counted if counted else 0 for total, counted in zip(totals, weights, strict=True)]


def requested_to_capacity_ratio(shape: Shape) -> Scorer:
    """Return the strategy that reads scores off a shape; resources that score 0 are left out of the mean."""
    points = [(utilization, score * _SCORES_PER_POINT) for utilization, score in shape]

    def score(columns: Sequence[Column]) -> list[int]:
        totals = [0] * len(columns[0].offered)
        weights = totals[:]
        for column in columns:
            for place, (asked, offered) in enumerate(zip(column.asked, column.offered, strict=True)):
                here = _on_line(points, _utilization(asked, offered)) if offered else 0
                totals[place] += max(here, 0) * column.weight
                weights[place] += column.weight if here > 0 else 0
        return [rounded(total / weight) if weight else 0 for total, weight in zip(totals, weights, strict=True)]

    return score


def _utilization(asked: int, offered: int) -> int:
    return WHOLE if asked > offered else asked * WHOLE // offered


def _on_line(points: Shape, utilization: int) -> int:
    before = points[0]
    for at, score in points:
        if utilization <= at:
            if at == before[0]:
                return score
            return before[1] + quotient((score - before[1]) * (utilization - before[0]), at - before[0])
        before = (at, score)
    return before[1]
