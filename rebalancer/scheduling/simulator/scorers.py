"""Strategies of NodeResourcesFit: what a node scores, 0 to 100, by how much of it is requested.

Source: the Kubernetes documentation, Resource Bin Packing.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import add
from typing import NamedTuple

from rebalancer.scheduling.simulator.nodes import WHOLE, rounded

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
    return _means(columns, lambda pairs: [(o - a) * WHOLE // o if a < o else 0 for a, o in pairs])


def most_allocated(columns: Sequence[Column]) -> list[int]:
    """Return the weighted mean of what is requested on each node, in percent; at most 100 per resource."""
    return _means(columns, lambda pairs: [(a * WHOLE // o if a < o else WHOLE) if o else 0 for a, o in pairs])


def _means(columns: Sequence[Column], points: Callable[[Iterable[tuple[int, int]]], list[int]]) -> list[int]:
    """Return the weighted means of the points that nodes get for what is asked and offered, 0 where nothing is offered.

    Whole columns are passed on, since a call for each node would take most of the time.
    """
    totals = [0] * len(columns[0].offered)
    for asked, offered, weight in columns:
        found = points(zip(asked, offered, strict=True))
        totals = list(map(add, totals, found if weight == 1 else [weight * each for each in found]))
    whole = sum(column.weight for column in columns)
    if whole and all(all(column.offered) for column in columns):
        return [total // whole for total in totals]
    return [total // counted if counted else 0 for total, counted in zip(totals, _counted(columns), strict=True)]


def _counted(columns: Sequence[Column]) -> list[int]:
    """Return the sum of the weights that count on each node: of the resources that it offers."""
    offered = zip(*(column.offered for column in columns), strict=True)
    weights = [column.weight for column in columns]
    return [sum(weight for weight, o in zip(weights, each, strict=True) if o) for each in offered]


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
            return before[1] + _quotient((score - before[1]) * (utilization - before[0]), at - before[0])
        before = (at, score)
    return before[1]


def _quotient(dividend: int, divisor: int) -> int:
    """Return a quotient rounded towards zero."""
    whole = abs(dividend) // abs(divisor)
    return whole if (dividend < 0) == (divisor < 0) else -whole
