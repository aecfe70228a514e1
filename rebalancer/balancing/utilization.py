"""How full one node is: what it uses against what it offers, in percent, and how far that is from bounds.

Usage may come from requests or from measurements; this module sees numbers, and never their source.  There is one
tolerance: percentages that differ by less than 0.000000001 are equal.  For example, 7 / 100 * 100 is a little more than
7 in floating point; still, a node that uses 7 of 100 is not above 7 %, and an empty one has room for 7 up to 7 %.

A node may have an offset: its pool's mean less the mean of all nodes.  Bounds are given for the mean of all nodes; for
the node they are higher by its offset.  For example, all nodes use 40 %, those of its pool 55 %.  The offset is 15
points, and a band of 30 to 50 % is 45 to 65 % for this node.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from statistics import fmean
from types import MappingProxyType

from rebalancer.cluster.node import Node
from rebalancer.cluster.resources import CONTENTION, METRIC_RESOURCE, Resources

#: Smaller differences of percentages are floating-point noise.
TOLERANCE = 1e-9

Points = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Excess:
    """How far a node is above its targets: points by resource, only for those above their target."""

    points: Points

    @property
    def total(self) -> float:
        """The sum over the resources."""
        return sum(self.points.values())

    def left(self, taken: Points) -> float:
        """Return the sum that stays above target when a pod has gone; 0 if the node is within target then."""
        left = 0.0
        for name, over in self.points.items():
            remains = over - taken.get(name, 0.0)
            left += remains if remains > TOLERANCE else 0.0
        return left

    def beyond(self, taken: Points) -> float:
        """Return how much more than the excess a pod takes, if it brings the node within target."""
        return sum(taken.get(name, 0.0) - over for name, over in self.points.items())


_DECIMALS = 9
_WHOLE = 100.0
_HUNDREDTHS = 10_000

Percentages = Mapping[str, float]
#: Of nodes that are not compared by pools.
NO_OFFSET: Percentages = MappingProxyType({})


class NodeUtilization:
    """What one node uses, with pods that come and go."""

    def __init__(self, node: Node, used: Resources, offset: Percentages = NO_OFFSET) -> None:
        self.node = node
        self.used = dict(used)  # by tracked resource
        self.offset = offset  # by resource, by how much bounds are higher for this node
        self.offered: Resources = {
            **(node.allocatable or node.capacity),
            METRIC_RESOURCE: int(_WHOLE),
            CONTENTION: _HUNDREDTHS,
        }

    @property
    def total(self) -> int:
        """The descheduler's raw load: millicores, bytes and counts all added up, so that memory decides."""
        return sum(self.used.values())

    def charge(self, amounts: Resources, sign: int = 1) -> None:
        """Count the usage of a pod that comes (1) or goes (-1), of the tracked resources."""
        for name in self.used:
            self.used[name] += sign * amounts.get(name, 0)

    @contextmanager
    def exchanged(self, fewer: Iterable[Resources], more: Iterable[Resources]) -> Iterator[None]:
        """Leave the usage of some pods out within the block, and add that of others."""
        before = dict(self.used)
        for sign, pods in ((-1, fewer), (1, more)):
            for amounts in pods:
                self.charge(amounts, sign)
        try:
            yield
        finally:
            self.used = before

    def percent(self, name: str) -> float | None:
        """Return how much of its capacity the node uses; None if it does not offer the resource, 0 if it has none."""
        capacity = self.offered.get(name)
        if capacity is None or name not in self.used:
            return None
        return self.used[name] / capacity * 100 if capacity else 0.0

    def bounds(self, bounds: Percentages) -> Percentages:
        """Return bounds as they are for this node."""
        if not self.offset:
            return bounds
        return {name: clamped(bound + self.offset.get(name, 0.0)) for name, bound in bounds.items()}

    def level(self, name: str) -> float:
        """Return how full the node is, in percent, to be compared with bounds for the mean of all nodes."""
        return (self.percent(name) or 0.0) - self.offset.get(name, 0.0)

    def percents(self) -> Points:
        """Return how full the node is, by tracked resource; 0 for what it does not offer."""
        return {name: self.percent(name) or 0.0 for name in self.used}

    @property
    def fullness(self) -> float:
        """The sum of the percentages."""
        return round(sum(self.percents().values()), _DECIMALS)

    def points(self, amounts: Resources) -> Points:
        """Return amounts in percent of what the node has; infinite for a resource that it does not have."""
        return {name: self._share(name, amounts.get(name, 0)) for name in self.used}

    def above(self, targets: Percentages) -> Excess:
        """Return how far the node is above its targets; a resource that it does not offer counts as unused."""
        over = {name: (self.percent(name) or 0.0) - bound for name, bound in sorted(self.bounds(targets).items())}
        return Excess({name: points for name, points in over.items() if points > TOLERANCE})

    def within(self, thresholds: Percentages) -> bool:
        """Return whether no resource is above its threshold; one that the node does not offer counts as unused."""
        return not self.above(thresholds).points

    def lacks(self, floors: Percentages) -> bool:
        """Return whether some resource is below its floor."""
        return self.short_of(floors, {}) > 0

    def short_of(self, floors: Percentages, change: Points) -> float:
        """Return by how many points the node is below floors, summed up, after a change of its usage."""
        bounds = self.bounds(floors)
        short = (floor - (self.percent(name) or 0.0) - change.get(name, 0.0) for name, floor in bounds.items())
        return round(sum(points for points in short if points > 0), _DECIMALS)

    def outside(self, floors: Percentages, ceilings: Percentages, added: Points) -> float:
        """Return by how many points the node is below floors and above ceilings, summed up, with points added."""
        full = {name: points + added.get(name, 0.0) for name, points in self.percents().items()}
        low, high = self.bounds(floors), self.bounds(ceilings)
        below = sum(max(floor - full[name], 0.0) for name, floor in low.items() if name in full)
        above = sum(max(full[name] - ceiling, 0.0) for name, ceiling in high.items() if name in full)
        return round(below + above, _DECIMALS)

    def passed(self, amounts: Resources, ceilings: Percentages) -> tuple[str, float] | None:
        """Return which ceiling, 100 % where none is given, a node would pass with these amounts added; None if none."""
        bounds = self.bounds(ceilings)
        for name, used in self.used.items():
            ceiling = bounds.get(name, _WHOLE)
            if self._share(name, used + amounts.get(name, 0)) > ceiling + TOLERANCE:
                return name, ceiling
        return None

    def cap(self, name: str, ceilings: Percentages) -> int:
        """Return how much the node may use in whole units; without a ceiling, all it has."""
        return int((self.bounds(ceilings).get(name, _WHOLE) + TOLERANCE) / _WHOLE * self.offered.get(name, 0))

    def headroom(self, ceilings: Percentages) -> dict[str, int]:
        """Return how much more of each resource would pass no ceiling; negative where one is passed already."""
        return {name: self.cap(name, ceilings) - used for name, used in self.used.items()}

    def _share(self, name: str, amount: int) -> float:
        capacity = self.offered.get(name, 0)
        return amount / capacity * 100 if capacity else (inf if amount > 0 else 0.0)


def means(nodes: Iterable[NodeUtilization], names: Iterable[str]) -> Percentages:
    """Return the mean percentage of each resource over the nodes that offer it; one that no node offers has none."""
    known = list(nodes)
    percents = {name: [p for each in known if (p := each.percent(name)) is not None] for name in names}
    return {name: fmean(each) for name, each in percents.items() if each}


def clamped(percent: float) -> float:
    """Return a percentage that is between 0 and 100."""
    return min(max(percent, 0.0), _WHOLE)
