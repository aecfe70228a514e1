"""Filling: bring nodes that are below a band around the mean into it.

Where targets are distances from a mean, a node below its band is as wrong as one above it.  So when nodes above the
band have given what they may, nodes above the mean give too.  The pod goes that is expected to bring most: points that
the nodes where it would likely land lack up to the mean, less those that its own node lacks then.  Large gains come
before small ones, and nodes are lifted halfway to the band's upper edge before they are lifted further.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from rebalancer.model.level import Level, Points
from rebalancer.model.relief import Candidate, Relief, node_is_spent
from rebalancer.model.reservations import Landing
from rebalancer.model.usage import Percentages
from rebalancer.model.verdict import Refused

#: How far above the mean, as a share of the way to the band's edge, destinations are filled at first, and at last: not
#: to the very edge, since where a pod lands is likely and not certain.
FIRST_CEILING = 0.5
LAST_CEILING = 0.9
#: How far a node may be brought from the edge towards the mean by what it gives.
_KEPT = 0.5
#: The least gain of a move, in points; small ones only while some node is below its band.
_GAINS = (1.0, 0.3)
#: So many moves a cycle for each node that is below its band: the next cycle knows where these landed.
_MOVES_PER_NODE = 2
#: So many nodes in a row that have nothing to give end the search: large clusters have thousands.
_PATIENCE = 20
_DECIMALS = 9  # what differs by less is equal, but for the noise of floating point


@dataclass(frozen=True, slots=True)
class Band:
    """Percentages by resource: the mean, and the edges around it."""

    low: Percentages
    mean: Percentages
    high: Percentages

    def below(self, share: float) -> Percentages:
        """Return what lies such a share of the way from the lower edge to the mean."""
        return {name: edge + share * (self.mean[name] - edge) for name, edge in self.low.items()}

    def above(self, share: float) -> Percentages:
        """Return what lies such a share of the way from the mean to the upper edge."""
        return {name: self.mean[name] + share * (edge - self.mean[name]) for name, edge in self.high.items()}


class Filling:
    """Moves pods from nodes above the mean to where they are needed.

    Args:
        relief: what draws pods off nodes, with its places.
        band: where nodes should be.
    """

    def __init__(self, relief: Relief, band: Band) -> None:
        self._relief = replace(relief, targets=band.mean, asked_for=False)
        self._band = band
        self._kept = band.below(_KEPT)
        self._moves_left = 0

    def run(self, sources: Iterable[Level]) -> None:
        """Fill nodes while some are below the band; of a source that knows nothing of pods, none.

        Raises:
            CycleOver: see `Evict`.
        """
        if not self._relief.figures.pods_known:
            return
        givers = self._relief.ordered(sources)
        self._moves_left = _MOVES_PER_NODE * self._lacking(self._band.low)
        for ceilings, least in product(map(self._band.above, (FIRST_CEILING, LAST_CEILING)), _GAINS):
            if self._lacking(self._band.low):
                self._relief.reservations.limit(ceilings)
                self._pour(givers, least)

    def _pour(self, givers: Iterable[Level], least: float) -> None:
        wanted = self._band.mean if least == _GAINS[0] else self._band.low
        idle = 0
        for source in givers:
            if not self._moves_left or idle == _PATIENCE:
                return
            before = self._moves_left
            self._give(source, least, wanted)
            idle = 0 if self._moves_left < before else idle + 1

    def _give(self, source: Level, least: float, wanted: Percentages) -> None:
        for group in self._relief.groups(source):
            while self._moves_left and self._lacking(wanted) and (best := self._best(group, source, least)):
                candidate, landing = best
                group.remove(candidate)
                self._moves_left -= 1
                if self._is_spent(source) or node_is_spent(self._relief.move(candidate, source, landing)):
                    return

    def _is_spent(self, source: Level) -> bool:
        return self._relief.evicted[source.node.name] == self._relief.limit

    def _lacking(self, floors: Percentages) -> int:
        """Return how many nodes are below floors."""
        return sum(_lack(landing.load, floors, {}) > 0 for landing in self._relief.reservations.landings)

    def _best(self, group: Sequence[Candidate], source: Level, least: float) -> tuple[Candidate, Landing] | None:
        """Return the candidate with the largest gain above the least, the oldest of equal ones, and where it lands."""
        best = None
        for candidate in group:
            gain, landing = self._gain(candidate, source)
            if landing and gain > least:
                best, least = (candidate, landing), gain
        return best

    def _gain(self, candidate: Candidate, source: Level) -> tuple[float, Landing | None]:
        """Return the gain to be expected, and the landing where it would be largest."""
        prospects = self._relief.reservations.prospects(candidate.pod, candidate.usage)
        if isinstance(prospects, Refused):
            return 0.0, None
        gains = [self._filled(landing, candidate) for landing in prospects]
        taken = {name: -points for name, points in candidate.points.items()}
        loss = _lack(source, self._kept, taken) - _lack(source, self._kept, {})
        return round(sum(gains) / len(gains) - loss, _DECIMALS), prospects[gains.index(max(gains))]

    def _filled(self, landing: Landing, candidate: Candidate) -> float:
        added = landing.load.points(candidate.usage)
        return round(_lack(landing.load, self._band.mean, {}) - _lack(landing.load, self._band.mean, added), _DECIMALS)


def _lack(load: Level, floors: Percentages, change: Points) -> float:
    """Return how many points a node is below floors, summed up, with a change of what it uses."""
    lacks = (floor - (load.percent(name) or 0.0) - change.get(name, 0.0) for name, floor in floors.items())
    return round(sum(lack for lack in lacks if lack > 0), _DECIMALS)
