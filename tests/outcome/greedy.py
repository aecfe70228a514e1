"""The yardstick of steering: a greedy plan that may move any pod to any node, one after the other, until all is well.

Of all moves that lift no node above its bounds the one is made that takes most off the points by which nodes are
outside them, with a little for evenness, as long as a node is outside and something helps.  The rules of owners and
PDBs bound how many pods of an owner move at a time, not how many in all: each is Ready elsewhere before the next one
goes.  So one move after the other keeps to them.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.outcome.scenarios import Bounds
from tests.outcome.state import RESOURCES, Shares, deviation

EVENNESS = 0.003
_MOST = 400

Points = tuple[float, ...]


@dataclass(frozen=True)
class Greedy:
    """What the plan comes to: its moves, and the nodes afterwards."""

    moves: int
    end: Shares

    def deviation(self, resource: str) -> float:
        return deviation(self.end, resource)


@dataclass(frozen=True)
class _Edges:
    low: Points
    mean: Points
    high: Points

    def outside(self, fill: Points) -> float:
        edges = zip(fill, self.low, self.high, strict=True)
        return sum(max(each - high, low - each, 0.0) for each, low, high in edges)

    def cost(self, fill: Points) -> float:
        even = sum((each - mean) ** 2 for each, mean in zip(fill, self.mean, strict=True))
        return self.outside(fill) + EVENNESS * even

    def is_over(self, fill: Points) -> bool:
        return any(each > high for each, high in zip(fill, self.high, strict=True))


def greedy(shares: Shares, pods: Mapping[str, Sequence[Points]], bounds: Bounds) -> Greedy:
    """Return the plan.

    Args:
        shares: what nodes use at first, in percent.
        pods: by node, what each pod uses there, in percent of a node, by resource.
        bounds: where nodes should be.
    """
    fills = {node: tuple(share[name] for name in RESOURCES) for node, share in shares.items()}
    there = {node: list(pods.get(node, ())) for node in fills}
    edges, moves = _edges(fills, bounds), 0
    while moves < _MOST and any(edges.outside(fill) > 1e-9 for fill in fills.values()):
        best = _best(fills, there, edges)
        if best is None:
            break
        source, pod, destination = best
        there[source].remove(pod)
        there[destination].append(pod)
        fills[source] = _plus(fills[source], pod, -1)
        fills[destination] = _plus(fills[destination], pod)
        moves += 1
    return Greedy(moves, {node: dict(zip(RESOURCES, fill, strict=True)) for node, fill in fills.items()})


def _edges(fills: Mapping[str, Points], bounds: Bounds) -> _Edges:
    mean = tuple(map(statistics.fmean, zip(*fills.values(), strict=True)))
    if not bounds.deviation:
        return _Edges((0.0,) * len(mean), mean, tuple(bounds.high[name] for name in RESOURCES))
    low = tuple(each - bounds.low[name] for each, name in zip(mean, RESOURCES, strict=True))
    return _Edges(low, mean, tuple(each + bounds.high[name] for each, name in zip(mean, RESOURCES, strict=True)))


def _best(
    fills: Mapping[str, Points], there: Mapping[str, Iterable[Points]], edges: _Edges
) -> tuple[str, Points, str] | None:
    """Return the move that brings most; what cannot bring more than the best so far is not looked at."""
    costs = {node: edges.cost(fill) for node, fill in fills.items()}
    relieved = [
        (costs[node] - edges.cost(_plus(fills[node], pod, -1)), node, pod) for node in fills for pod in set(there[node])
    ]
    gain, best, most = 0.05, None, max(costs.values())
    for relief, source, pod in sorted(relieved, reverse=True):
        if relief + most <= gain:
            break
        for destination, fill in fills.items():
            if destination != source and relief + costs[destination] > gain:
                after = _plus(fill, pod)
                brought = relief + costs[destination] - edges.cost(after)
                if brought > gain and not edges.is_over(after):
                    gain, best = brought, (source, pod, destination)
    return best


def _plus(fill: Points, pod: Points, sign: int = 1) -> Points:
    return tuple([each + sign * more for each, more in zip(fill, pod, strict=True)])
