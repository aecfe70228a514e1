"""Which nodes are too full or nearly idle, the band around the mean, and pools of nodes with bands of their own.

In pools nodes are compared with nodes like them, and their pods may have to stay among them.

An example: four nodes use 80, 40, 30 and 10 %, the first two of one instance type, the others of another.  The mean of
all is 40 %, of the first pool 60 %, of the second 20 %.  So their offsets are 20 and -20 points, and a band of 8 points
around the mean is 52 to 68 % for the first two, and 12 to 28 % for the others.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rebalancer.balancing.utilization import NodeUtilization, Percentages, clamped, means


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
