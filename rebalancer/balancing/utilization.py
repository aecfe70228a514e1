"""How full nodes are: what they use against what they offer, in percent, and how far that is from bounds.

Usage may come from requests or from measurements; this module sees numbers, and never their source.  There is one
tolerance: percentages that differ by less than 0.000000001 are equal.  For example, 7 / 100 * 100 is a little more than
7 in floating point; still, a node that uses 7 of 100 is not above 7 %, and an empty one has room for 7 up to 7 %.

Nodes are compared with a band around the mean, or, in pools, with nodes like them: such a node has an offset, its
pool's mean less the mean of all nodes, by which bounds are higher for it.  For example, four nodes use 80, 40, 30 and
10 %, the first two of one pool.  The mean of all is 40 %, the pools' are 60 and 20 %, so the offsets are 20 and -20
points.  A band of 8 points around the mean is 52 to 68 % for the first two, and 12 to 28 % for the others.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
#: No change of what a node uses, and the offset of nodes that are not compared by pools.
NONE: Percentages = MappingProxyType({})


class NodeUtilization:
    """What one node uses, with pods that come and go."""

    def __init__(self, node: Node, used: Resources, offset: Percentages = NONE) -> None:
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

    def floors(self, floors: Percentages) -> Percentages:
        """Return bounds below which it uses too little, as they are for this node: none for what it has nothing of."""
        return {name: floor for name, floor in self.bounds(floors).items() if self.offered.get(name)}

    def level(self, name: str, without: float) -> float:
        """Return how full the node is, in percent, to be compared with bounds for the mean of all nodes.

        `without` is for a node that has nothing of the resource.
        """
        has = self.offered.get(name)
        return (self.percent(name) or 0.0) - self.offset.get(name, 0.0) if has else without

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

    def above(self, targets: Percentages, change: Points = NONE) -> Excess:
        """Return how far the node is above its targets, after a change; what it does not offer counts as unused."""
        over = {
            name: (self.percent(name) or 0.0) + change.get(name, 0.0) - bound
            for name, bound in sorted(self.bounds(targets).items())
        }
        return Excess({name: points for name, points in over.items() if points > TOLERANCE})

    def within(self, thresholds: Percentages) -> bool:
        """Return whether no resource is above its threshold; one that the node does not offer counts as unused."""
        return not self.above(thresholds).points

    def short_of(self, floors: Percentages, change: Points = NONE) -> float:
        """Return by how many points the node is below floors, summed up, after a change of its usage."""
        short = (
            floor - (self.percent(name) or 0.0) - change.get(name, 0.0)
            for name, floor in self.bounds(floors).items()
            if self.offered.get(name)  # as in `floors`, and faster
        )
        return round(sum(points for points in short if points > 0), _DECIMALS)

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


@dataclass(frozen=True, slots=True)
class Band:
    """Percentages by resource: the mean, and the edges around it.

    For example, with a mean of 40 % and thresholds 10 below and 20 above it, the edges are 30 % and 60 %, halfway up
    is 50 %, and halfway from the lower edge to the mean is 35 %.
    """

    low: Percentages
    mean: Percentages
    high: Percentages
    deviation: bool = False

    @property
    def floors(self) -> Percentages:
        """Below which nodes use too little; none where the edges are not distances from the mean."""
        return self.low if self.deviation else {}

    def below(self, share: float) -> Percentages:
        """Return the percentages at this share of the way from the lower edge to the mean."""
        return {name: edge + share * (self.mean[name] - edge) for name, edge in self.low.items()}

    def above(self, share: float) -> Percentages:
        """Return the percentages at this share of the way from the mean to the upper edge."""
        return {name: self.mean[name] + share * (edge - self.mean[name]) for name, edge in self.high.items()}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Percentages by resource, as a policy gives them."""

    low: Percentages  # at or below all of these a node is underutilized
    high: Percentages  # above any of these it is overutilized
    deviation: bool = False  # whether both are distances from the mean of all nodes

    def of(self, nodes: Sequence[NodeUtilization], *, pooled: bool = False) -> Band:
        """Return the band of these nodes, between 0 and 100 %; in pools each node sees to that, after its offset."""
        mean = means(nodes, self.low)
        if not self.deviation:
            return Band(self.low, mean, self.high)
        low = {name: middle - self.low[name] for name, middle in mean.items()}
        high = {name: middle + self.high[name] for name, middle in mean.items()}
        if not pooled:
            low, high = ({name: clamped(each) for name, each in edges.items()} for edges in (low, high))
        return Band(low, mean, high, deviation=True)


def pooled(nodes: Iterable[NodeUtilization], label: str) -> list[list[NodeUtilization]]:
    """Return nodes by the value of a label, in the order of values; those without it are a pool, too."""
    pools: defaultdict[str, list[NodeUtilization]] = defaultdict(list)
    for each in nodes:
        pools[each.node.labels.get(label, "")].append(each)
    return [pools[value] for value in sorted(pools)]


def offsets(
    pools: Iterable[Sequence[NodeUtilization]], mean: Percentages, left_out: Collection[str]
) -> Mapping[str, Percentages]:
    """Return by node how far its pool's mean, without nodes left out unless it has no others, is from that of all."""
    found: dict[str, Percentages] = {}
    for pool in pools:
        own = means([each for each in pool if each.node.name not in left_out] or pool, mean)
        offset = {name: own.get(name, middle) - middle for name, middle in mean.items()}
        found |= {each.node.name: offset for each in pool}
    return found
