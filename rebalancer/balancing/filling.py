"""Filling: bring nodes that are below a band around the mean into it.

Where targets are distances from a mean, a node below its band is as wrong as one above it.  So when nodes above the
band have given what they may, nodes above the mean give too.  The pod goes that is expected to bring most: points that
the nodes where it would likely land lack up to the mean, less those that its own node lacks then, and a part of what it
does for nodes that wait until the scheduler chooses them (see `rebalancer.scheduling.rivals`).  Large gains come before
small ones, and nodes are lifted halfway to the band's upper edge before they are lifted further.  But no dearer pod
(see `rebalancer.eviction.order`) goes before a cheaper one of its node that brings anything.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import ceil

from rebalancer.balancing.level import Level, Points
from rebalancer.balancing.relief import Candidate, Relief, node_is_spent
from rebalancer.balancing.reservations import Landing
from rebalancer.balancing.usage import Percentages
from rebalancer.eviction.verdict import Refused
from rebalancer.scheduling.rivals import Rivals

#: How far above the mean, as a share of the way to the band's edge, destinations are filled at first, and then: not to
#: the very edge, since where a pod lands is likely and not certain.
FIRST_CEILING = 0.5
LAST_CEILING = 0.9
#: To the edge at last: the scheduler may want all pods on one node, which is full of one resource and low in another.
_CEILINGS = (FIRST_CEILING, LAST_CEILING, 1.0)
#: How far a node may be brought from the edge towards the mean by what it gives.
_KEPT = 0.5
#: The least gain of a move, in points, round by round; small ones only while a node is below its band.
_SMALL_GAIN = 0.3
_GAINS = (4.0, 2.0, 1.0, _SMALL_GAIN)
#: What a point of requests is worth by which the rivals of a node below its band catch up.
_WORTH_OF_A_REQUEST = 0.2
#: Of nodes that are equally likely the scheduler takes any.  While so few are below the band, a pod counts as landing
#: where it brings least: who counts on luck stops too early.  While more are, it counts as landing where it brings
#: most: chance fills one or another, and who counts on bad luck fills some twice.
_FEW = 3
#: So many tries a cycle for each node that is below its band, and for each node that there is: forecasts wear out with
#: every move, and the next cycle knows where these landed.
_TRIES_PER_LOW_NODE = 8
_TRIES_PER_NODE = 0.8
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
        self._low = _Below(band.low, relief.reservations.landings)
        self._wanting = _Below(band.mean, relief.reservations.landings)
        self._rivals = self._look_around()
        self._tries_left = 0

    def run(self, sources: Iterable[Level]) -> None:
        """Fill nodes while some are below the band; of a source that knows nothing of pods, none.

        Raises:
            CycleOver: see `Evict`.
        """
        if not self._relief.figures.pods_known:
            return
        givers = self._relief.ordered(sources)
        nodes = len(self._relief.reservations.landings)
        self._tries_left = min(_TRIES_PER_LOW_NODE * len(self._low.names), ceil(_TRIES_PER_NODE * nodes))
        for ceilings, least in product(map(self._band.above, _CEILINGS), self._gains()):
            if self._low.names:
                self._relief.reservations.limit(ceilings)
                self._pour(givers, least)

    def _gains(self) -> Sequence[float]:
        """Return the least gains of the rounds; where forecasts are rough, to tell large ones is not worth the time."""
        forecast = self._relief.reservations.forecast
        return _GAINS if forecast is None or forecast.exact else _GAINS[-2:]

    def _pour(self, givers: Iterable[Level], least: float) -> None:
        idle = 0
        for source in givers:
            if not self._tries_left or idle == _PATIENCE:
                return
            before = self._tries_left
            self._give(source, least)
            idle = 0 if self._tries_left < before else idle + 1

    def _give(self, source: Level, least: float) -> None:
        wanting = self._low if least == _SMALL_GAIN else self._wanting
        for group in self._relief.groups(source):
            offers = [offer for candidate in group if (offer := self._offer(candidate, source))]
            while self._tries_left and wanting.names and (best := self._best(offers, source)):
                if best.gain <= least:
                    return
                offers.remove(best)
                self._tries_left -= 1
                if self._is_spent(source) or self._move(best, source):
                    return

    def _is_spent(self, source: Level) -> bool:
        return self._relief.evicted[source.node.name] == self._relief.limit

    def _move(self, offer: "_Offer", source: Level) -> bool:
        """Move a pod, and tell whether its node may lose no more."""
        verdict = self._relief.move(offer.candidate, source, offer.landing)
        self._low.look_at(offer.landing)
        self._wanting.look_at(offer.landing)
        self._rivals = self._look_around()
        return node_is_spent(verdict)

    def _look_around(self) -> Rivals:
        return Rivals(self._relief.reservations.forecast, self._low.names)

    def _best(self, offers: "list[_Offer]", source: Level) -> "_Offer | None":
        """Return the offer that brings most, the oldest pod's of equal ones, if any brings more than a small gain.

        Moves made meanwhile change what offers bring: the best is asked again, and the others only once it is worse.
        """
        while offers:
            best = max(range(len(offers)), key=lambda index: offers[index].gain)
            before, again = offers[best].gain, self._offer(offers[best].candidate, source)
            if again is None:
                del offers[best]
                continue
            offers[best] = again
            if again.gain >= before:
                return again if again.gain > _SMALL_GAIN else None
        return None

    def _offer(self, candidate: Candidate, source: Level) -> "_Offer | None":
        """Return the gain to be expected, and the landing to count on."""
        prospects = self._relief.reservations.prospects(candidate.pod, candidate.usage)
        if isinstance(prospects, Refused):
            return None
        gains = [self._gain(candidate, landing) for landing in prospects]
        taken = {name: -points for name, points in candidate.points.items()}
        loss = _lack(source, self._kept, taken) - _lack(source, self._kept, {})
        gain = round(sum(gains) / len(gains) - loss, _DECIMALS)
        counted_on = min(gains) if len(self._low.names) <= _FEW else max(gains)
        return _Offer(gain, candidate, prospects[gains.index(counted_on)])

    def _gain(self, candidate: Candidate, landing: Landing) -> float:
        added = landing.load.points(candidate.usage)
        filled = _lack(landing.load, self._band.mean, {}) - _lack(landing.load, self._band.mean, added)
        satisfied = not _lack(landing.load, self._band.low, added)
        caught_up = self._rivals.caught_up(candidate.pod, landing.node, satisfied)
        return round(filled + _WORTH_OF_A_REQUEST * caught_up, _DECIMALS)


@dataclass(frozen=True, slots=True)
class _Offer:
    """A pod that may go, what that brings, in points, and where it is taken to land."""

    gain: float
    candidate: Candidate
    landing: Landing


class _Below:
    """The nodes that are below some floors; `names` are theirs."""

    def __init__(self, floors: Percentages, landings: Iterable[Landing]) -> None:
        self._floors = floors
        self.names: set[str] = set()
        for landing in landings:
            self.look_at(landing)

    def look_at(self, landing: Landing) -> None:
        """Look again at a node that has changed."""
        if _lack(landing.load, self._floors, {}):
            self.names.add(landing.node.name)
        else:
            self.names.discard(landing.node.name)


def _lack(load: Level, floors: Percentages, change: Points) -> float:
    """Return how many points a node is below floors, summed up, with a change of what it uses."""
    lacks = (floor - (load.percent(name) or 0.0) - change.get(name, 0.0) for name, floor in floors.items())
    return round(sum(lack for lack in lacks if lack > 0), _DECIMALS)
