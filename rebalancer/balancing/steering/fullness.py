"""The goal of steering: every node within its band or target; what a node costs while it is not, and how full it is.

A node outside its band costs the points by which it is outside, summed over the resources.  The band here is narrower
than the real one by a margin, so that small changes of its usage do not take a node out again; but only nodes outside
the real band are worth a move.  Distance from the mean also costs a little.  So of two moves with the same gain the one
to the emptier node is made, and a plan does not get stuck where no single move helps.

An example: the band is 30 to 60 % around a mean of 40 %, the margin 2 points.  A node at 63 % costs 5, one at 59 %
costs 1 but starts nothing, one at 57 % costs 0 (without what the distance from the mean costs).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from rebalancer.balancing.candidates import Selection
from rebalancer.balancing.usage import FollowedUsage
from rebalancer.balancing.utilization import TOLERANCE, Band, NodeUtilization, Percentages
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import CONTENTION, Resources, arriving

#: How full a node is, in percent, in the order of the goal's resources.
Fill = Sequence[float]
#: Many fills, or what many pods use: one array for each of the goal's resources, all of the same shape.
Fills = NDArray[np.float64]
#: A number for each of them.
Costs = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: How far inside their band nodes are brought, as a multiple of the least gain of a move.  With 1.25, plans have a
#: fifth fewer moves, but while load changes, nodes are over their target for longer: in two clusters for 17.5 and
#: 19.5 hours in a day, and with 2 for 15 and 11.
MARGIN = 2.0
#: What a squared point of distance from the mean costs.  With more, plans take more moves; with none, they end with a
#: node or two outside that no single move brings in.
_EVENNESS = 0.003


class Goal:
    """Edges by resource, in one order."""

    def __init__(self, band: Band, margin: float) -> None:
        """Nodes are brought inside the band by the margin, in points, but not beyond the mean.

        Where the edges are not distances from the mean, the lower one does not count: it is 0.
        """
        self.names = tuple(sorted(band.mean))
        self.low = np.array([band.floors.get(name, 0.0) for name in self.names])  # below which a node is outside
        self.high = np.array([band.high[name] for name in self.names])  # above which it is outside
        self.mean = np.array([band.mean[name] for name in self.names])  # of all nodes
        # What nodes are brought up to, and down to.
        self.inner_low = np.minimum(self.low + margin, self.mean) if band.deviation else self.low
        self.inner_high = np.maximum(self.high - margin, np.minimum(self.mean, self.high))

    def highest(self, fills: Fills) -> Costs:
        """Return for each of some fills by how many points it is above the mean where that is most; below: negative."""
        highest: Costs = (fills - _beside(fills, self.mean)).max(axis=0)
        return highest

    def above(self, fills: Fills) -> Costs:
        """Return for each of some fills by how many points it is above the narrower band: what it has to give."""
        return reduce(add, np.maximum(fills - _beside(fills, self.inner_high), 0.0))

    def over(self, fills: Fills) -> Mask:
        """Return for each of some fills whether it is above the band in some resource."""
        over: Mask = np.any(fills > _beside(fills, self.high) + TOLERANCE, axis=0)
        return over

    def below(self, fills: Fills) -> Mask:
        """Return for each of some fills whether it is below the band in some resource."""
        below: Mask = np.any(fills < _beside(fills, self.low) - TOLERANCE, axis=0)
        return below

    def outside(self, fills: Fills) -> Costs:
        """Return for each of some fills by how many points it is outside the narrower band, summed up."""
        above, below = fills - _beside(fills, self.inner_high), _beside(fills, self.inner_low) - fills
        return reduce(add, np.maximum(np.maximum(above, below), 0.0))

    def unevenness(self, fills: Fills) -> Costs:
        """Return for each of some fills what its distance from the mean costs."""
        squares: Costs = reduce(add, np.square(fills - _beside(fills, self.mean)))
        return _EVENNESS * squares


def _beside(fills: Fills, edges: Fills) -> Fills:
    """Return edges with as many axes as fills, so that each resource meets its own."""
    return edges.reshape(-1, *[1] * (fills.ndim - 1))


class Fullness:
    """The nodes that are compared, twice: as sources, and with their peaks as destinations; it follows the cluster.

    A pod that comes is charged to both.  One that goes is taken off the source, and off the peak if the figures are of
    one moment: over a time window it may not have been this pod that made the peak.
    """

    def __init__(self, selection: Selection, goal: Goal, compared: Collection[str], ceilings: Percentages) -> None:
        self._usage = usage = selection.usage
        self._names = goal.names
        # Nodes that have nothing of a resource are not below their band in it.
        self._without = goal.inner_low.tolist()
        self._ceilings = ceilings
        self.sources = {each.node.name: each for each in usage.sources(compared, rises=True)}
        self.peaks = {name: usage.destination(each.node) for name, each in self.sources.items()}
        self._fills: dict[str, Fill] = {}
        self._peak_fills: dict[str, Fill] = {}
        self._used: dict[Pod, list[int]] = {}
        self._offered = {
            name: [each.offered.get(resource, 0) for resource in self._names] for name, each in self.sources.items()
        }
        peaks = FollowedUsage(self.peaks.values(), usage.of_pod, falls=usage.of_one_moment, rises=True)
        selection.cluster.follow(peaks)
        selection.cluster.follow(self)

    def fills(self, names: Sequence[str]) -> Fills:
        """Return how full nodes are as sources."""
        return self._of(self._fills, self.sources, names)

    def peak_fills(self, names: Sequence[str]) -> Fills:
        """Return how full nodes are as destinations."""
        return self._of(self._peak_fills, self.peaks, names)

    def _of(self, fills: dict[str, Fill], nodes: Mapping[str, NodeUtilization], names: Sequence[str]) -> Fills:
        for name in names:
            if name not in fills:
                fills[name] = tuple(map(nodes[name].level, self._names, self._without))
        return np.array([fills[name] for name in names]).reshape(-1, len(self._names)).T

    def offered(self, names: Iterable[str]) -> Fills:
        """Return what nodes have of each resource."""
        return np.array([self._offered[name] for name in names], dtype=np.float64).T

    def amounts(self, pods: Sequence[Pod]) -> Fills:
        """Return what pods use of each resource."""
        for pod in [each for each in pods if each not in self._used]:
            usage = self._usage.of_pod(pod)
            self._used[pod] = [usage.get(name, 0) for name in self._names]
        return np.array([self._used[pod] for pod in pods], dtype=np.float64).T

    def arriving(self, amounts: Fills) -> Fills:
        """Return what pods that use these amounts add to a node to which they come (see `resources.arriving`)."""
        return np.array([each * (name != CONTENTION) for name, each in zip(self._names, amounts, strict=True)])

    def room(self, names: Sequence[str]) -> Fills:
        """Return how much more of each resource nodes can take until they pass a ceiling."""
        ceilings = np.array([self._ceilings[name] for name in self._names])
        room: Fills = (ceilings[:, np.newaxis] - self.peak_fills(names)) * self.offered(names) / 100
        return room

    def has_room(self, name: str, pods: Iterable[Pod], spare: float, there: Iterable[Pod] = ()) -> bool:
        """Return whether `spare` times these pods' usage passes no ceiling of a node, in any resource measured.

        Pods that are there already need the rest of it only: their usage is charged once.
        """
        amounts: dict[str, float] = {}
        for times, group in ((spare, pods), (spare - 1, there)):
            for pod in group:
                for each, amount in arriving(self._usage.of_pod(pod)).items():
                    amounts[each] = amounts.get(each, 0.0) + times * amount
        together: Resources = {each: round(amount) for each, amount in amounts.items()}
        return self.peaks[name].passed(together, self._ceilings) is None

    def exchanged(self, name: str, fewer: Iterable[Pod], more: Iterable[Pod]) -> AbstractContextManager[None]:
        """Leave the usage of some pods out of a node's peak within the block, and add that of others."""
        of_pod = self._usage.of_pod
        return self.peaks[name].exchanged(*([arriving(of_pod(pod)) for pod in pods] for pods in (fewer, more)))

    def left(self, pod: Pod, _sign: int) -> None:
        """Look anew at a node that a pod has left, or where it is back."""
        self._fills.pop(pod.node, None)
        self._peak_fills.pop(pod.node, None)

    def came(self, _pod: Pod, node: Node, _sign: int) -> None:
        """Look anew at a node where a pod is expected, or is not any more."""
        self._fills.pop(node.name, None)
        self._peak_fills.pop(node.name, None)


def percents(amounts: Fills, offered: Fills) -> Fills:
    """Return amounts in percent of what nodes have; infinite for a resource that a node does not have."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(amounts > 0, amounts / offered * 100, 0.0)
