"""NodeResourcesFit: room by requests, and a score by how much is requested.

Source: the Kubernetes documentation, Resource Management; Resource Bin Packing (strategies LeastAllocated,
MostAllocated, RequestedToCapacityRatio).  Scores of cpu and memory count containers that request nothing with 100m and
200Mi each; other resources count as requested, and only for pods that request them.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add, mul, or_
from typing import NamedTuple

import numpy as np

from rebalancer.cluster.pod import Pod, PodSpec
from rebalancer.cluster.resources import CPU, MEMORY, PODS
from rebalancer.scheduling.equivalence import BySpec
from rebalancer.scheduling.simulator.nodes import WHOLE, ByNode, Mask, Nodes, rounded
from rebalancer.scheduling.simulator.plugin import Refusals
from rebalancer.scheduling.simulator.state import Shapes, State, counted, scored_of

TOO_MANY = "Too many pods"
EVEN: Mapping[str, int] = {CPU: 1, MEMORY: 1}
_SHORT = {PODS: TOO_MANY, CPU: "Insufficient cpu", MEMORY: "Insufficient memory"}
_NATIVE = (CPU, MEMORY, "ephemeral-storage")


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


class NodeResourcesFit:
    """Refuses full nodes, and scores the others by these resources; extended ones may be ignored where room counts."""

    name = "NodeResourcesFit"

    def __init__(
        self,
        state: State,
        scorer: Scorer = least_allocated,
        weights: Mapping[str, int] = EVEN,
        ignored: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._state = state
        self._scorer = scorer
        self._weights = weights
        self._ignored = ignored
        self._asked = BySpec(self._requests)
        self._scored = BySpec(self._amounts)
        self._short = Shapes(state, self._is_short)
        self._scores = Shapes(state, self._score)

    def refusals(self, pod: Pod, _nodes: Nodes) -> Refusals | None:
        """Return the nodes without room, and which requests do not fit."""
        short = self._short.by_node(pod)
        return Refusals(short.copy(), lambda index: self._lacking(pod, index)) if short.any() else None

    def _is_short(self, pod: Pod, nodes: Nodes) -> Mask:
        rooms = ((amount, self._state.room(name)) for name, amount in self._asked.of(pod.spec))
        short: Mask = reduce(or_, [amount > nodes.of(offered) - nodes.of(taken) for amount, (offered, taken) in rooms])
        return short

    def _lacking(self, pod: Pod, index: int) -> tuple[str, ...]:
        rooms = ((name, amount, *self._state.room(name)) for name, amount in self._asked.of(pod.spec))
        lacking = (name for name, amount, offered, taken in rooms if amount > offered[index] - taken[index])
        return tuple(_SHORT.get(name) or f"Insufficient {name}" for name in lacking)

    def _requests(self, spec: PodSpec) -> list[tuple[str, int]]:
        asked = ((PODS, 1), *spec.requests.items())
        return [(name, counted(amount)) for name, amount in asked if amount > 0 and not self._ignored(name)]

    def scores(self, pod: Pod, nodes: Nodes) -> ByNode:
        """Return the strategy's score of each node with the pod on it."""
        return self._scores.of(pod, nodes)

    def _score(self, pod: Pod, nodes: Nodes) -> ByNode:
        columns = [self._column(name, more, nodes) for name, more in self._scored.of(pod.spec)]
        return self._scorer(columns) if columns else np.zeros(nodes.shape, dtype=np.int64)

    def _amounts(self, spec: PodSpec) -> list[tuple[str, int]]:
        """Return the resources by which nodes are scored for a pod, and how much of them it takes."""
        names = [name for name in self._weights if name in _NATIVE or spec.requests.get(name)]
        requests = {**spec.requests, **scored_of(spec)}
        return [(name, counted(requests.get(name, 0))) for name in names]

    def _column(self, name: str, more: int, nodes: Nodes) -> Column:
        offered, taken = self._state.room(name)
        taken = self._state.assumed.get(name, taken)
        return Column(nodes.of(taken) + more, nodes.of(offered), self._weights[name])
