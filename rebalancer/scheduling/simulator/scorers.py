"""Strategies of NodeResourcesFit: what a node scores, 0 to 100, by how much of it is requested.

Source: the Kubernetes documentation, Resource Bin Packing.
"""

from collections.abc import Callable, Mapping, Sequence

from rebalancer.scheduling.simulator.arithmetic import WHOLE, quotient, rounded

#: By name of the resource, what is requested and what is offered; the latter is not zero.
Amounts = Mapping[str, tuple[int, int]]

#: Points of a shape: utilization in percent, and the score there from 0 to 10.
Shape = Sequence[tuple[int, int]]
_SCORES_PER_POINT = 10


def least_allocated(amounts: Amounts, weights: Mapping[str, int]) -> int:
    """Return the mean of what is left, in percent."""
    left = ((max(offered - asked, 0) * WHOLE // offered) * weights[name] for name, (asked, offered) in amounts.items())
    return sum(left) // sum(weights[name] for name in amounts)


def most_allocated(amounts: Amounts, weights: Mapping[str, int]) -> int:
    """Return the mean of what is requested, in percent; more than there is counts as all."""
    taken = ((min(asked, offered) * WHOLE // offered) * weights[name] for name, (asked, offered) in amounts.items())
    return sum(taken) // sum(weights[name] for name in amounts)


def requested_to_capacity_ratio(shape: Shape) -> Callable[[Amounts, Mapping[str, int]], int]:
    """Return the strategy that reads scores off a shape; resources that score nothing are left out of the mean."""
    points = [(utilization, score * _SCORES_PER_POINT) for utilization, score in shape]

    def score(amounts: Amounts, weights: Mapping[str, int]) -> int:
        by_name = {name: _on_line(points, _utilization(*amount)) for name, amount in amounts.items()}
        counted = {name: value for name, value in by_name.items() if value > 0}
        total = sum(weights[name] for name in counted)
        return rounded(sum(value * weights[name] for name, value in counted.items()) / total) if total else 0

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
