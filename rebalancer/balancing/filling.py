"""Filling: bring nodes that are below a band around the mean into it.

Where targets are distances from a mean, a node below its band is as wrong as one above it.  So when nodes above the
band have given what they may, nodes above the mean donate too.  The pod goes that is expected to bring most: points
that the nodes where it would likely land lack up to the mean, less those that its own node lacks then.  Large
gains come before small ones, and nodes are lifted halfway to the band's upper edge before they are lifted further.  But
no costly pod (see `rebalancer.eviction.order`) goes before a cheaper one of its node that brings anything.

An example: the mean is 40 %, the band 30 to 60 %.  n1 is at 58 %, n2 at 40 %, n3 at 22 %: n3 is low, and n1 donates.
A pod of 8 points on n1 would likely land on n3, which lacks 18 up to the mean and 10 then: the gain is 8.  n1 would be
at 50 % and lacks nothing.  A pod of 25 points would bring n3 to 47 %, so the gain is 18; but n1 would be at 33 %, two
below the 35 % that a donor keeps: 16 are left.  It still brings more, and goes first; n3 is in its band then.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil

from rebalancer.balancing.band import Band, NodesBelow
from rebalancer.balancing.candidates import Candidate
from rebalancer.balancing.destinations import Destinations
from rebalancer.balancing.moves import Moves, Purpose, node_is_spent
from rebalancer.balancing.relief import furthest_first
from rebalancer.balancing.utilization import NodeUtilization
from rebalancer.cluster.node import Node
from rebalancer.eviction.verdict import Refused

#: How far above the mean, as a share of the way to the band's edge, destinations are filled at first, and then: not to
#: the very edge, since where a pod lands is likely and not certain.
FIRST_CEILING = 0.5
LAST_CEILING = 0.9
#: To the edge at last: the scheduler may want all pods on one node, which is full of one resource and low in another.
_CEILINGS = (FIRST_CEILING, LAST_CEILING, 1.0)
#: How far a node may be brought from the edge towards the mean by what it donates.
_KEPT = 0.5
#: The least gain of a move, in points, round by round; small ones only while a node is below its band.
_SMALL_GAIN = 0.3
_GAINS = (4.0, 2.0, 1.0, _SMALL_GAIN)
#: Of several nodes that may win the scheduler takes any.  A pod must bring something on each of them; which one it is
#: charged to is a guess: while so few nodes are below the band, the one where it brings least, otherwise the search
#: would stop before the last of them is filled; while more are, the one where it brings most, otherwise some would be
#: filled twice.  Measured (`tests/outcome/simulation.py`, `deviation`): 185 to 204 evictions, and none or one node
#: below its band as a rule, three in one load; always the best, as many evictions, and one or two below more often;
#: always the worst, 175 to 194, and one to four below.
_FEW = 3
#: So many tries a cycle for each node that is below its band, and for each node that there is: where several nodes may
#: win, each move makes the next ones less certain, and the next cycle knows where these landed.  Measured as above:
#: without these bounds 234 to 265 evictions, and up to six nodes below their band in the end.
_TRIES_PER_LOW_NODE = 8
_TRIES_PER_NODE = 0.8
#: So many nodes in a row that have nothing to donate end the search: large clusters have thousands.
_MOST_IDLE_DONORS = 20
_DECIMALS = 9  # what differs by less is equal, but for the noise of floating point


@dataclass(frozen=True, slots=True)
class _Offer:
    """A pod that may go, what that brings, in points, the nodes it may land on, and the one to expect it on."""

    gain: float
    candidate: Candidate
    likely: Sequence[Node]
    destination: Node


class Filling:
    """Moves pods from nodes above the mean to where they are needed.

    Args:
        moves: what makes the moves.
        destinations: where pods may go.
        band: where nodes should be.
    """

    def __init__(self, moves: Moves, destinations: Destinations, band: Band) -> None:
        self._moves = moves
        self._destinations = destinations
        self._band = band
        self._purpose = Purpose(band.mean, filling=True)
        self._kept = band.below(_KEPT)
        self._low = NodesBelow(band.low, destinations.known)
        self._wanting = NodesBelow(band.mean, destinations.known)
        self._tries_left = 0

    def run(self, sources: Iterable[NodeUtilization]) -> None:
        """Fill nodes while some are below the band; of a source that knows nothing of pods, none.

        Raises:
            CycleOver: see `Evict`.
        """
        if not self._moves.pods_known:
            return
        donors = furthest_first(sources, self._band.mean)
        nodes = len(self._destinations.known)
        self._tries_left = min(_TRIES_PER_LOW_NODE * len(self._low.names), ceil(_TRIES_PER_NODE * nodes))
        # Round by round: first up to a low ceiling the moves of large gain, then smaller ones; then a higher ceiling.
        for ceilings, least in product(map(self._band.above, _CEILINGS), _GAINS):
            if self._low.names:
                self._destinations.limit(ceilings)
                self._collect(donors, least)

    def _collect(self, donors: Iterable[NodeUtilization], least: float) -> None:
        """Let the donors give what brings more than the least gain of this round."""
        idle = 0
        for donor in donors:
            if not self._tries_left or idle == _MOST_IDLE_DONORS:
                return
            before = self._tries_left
            self._donate(donor, least)
            idle = 0 if self._tries_left < before else idle + 1

    def _donate(self, donor: NodeUtilization, least: float) -> None:
        # Large gains fill any node up to the mean; small ones are worth an eviction only for a node below its band.
        waiting = self._low if least == _SMALL_GAIN else self._wanting
        for group in self._moves.groups(donor, self._purpose):
            offers = [offer for candidate in group if (offer := self._offer(candidate, donor))]
            while self._tries_left and waiting.names and (best := self._best(offers, donor)):
                if best.gain <= least:
                    return  # a cheaper pod still brings something, in a later round: the costly ones wait for that
                offers.remove(best)
                self._tries_left -= 1
                if self._moves.is_spent(donor) or self._move(best, donor):
                    return

    def _move(self, offer: _Offer, donor: NodeUtilization) -> bool:
        """Move a pod, and tell whether its node may lose no more."""
        verdict = self._moves.move(offer.candidate, donor, self._purpose, offer.destination, offer.likely)
        landed_on = self._destinations.on(offer.destination)
        self._low.look_at(landed_on)
        self._wanting.look_at(landed_on)
        return node_is_spent(verdict)

    def _best(self, offers: list[_Offer], donor: NodeUtilization) -> _Offer | None:
        """Return the offer that brings most, the oldest pod's of equal ones, if any brings more than a small gain.

        Moves made meanwhile change what offers bring: the best is asked again, and the others only once it is worse.
        """
        while offers:
            best = max(range(len(offers)), key=lambda index: offers[index].gain)
            before, again = offers[best].gain, self._offer(offers[best].candidate, donor)
            if again is None:
                del offers[best]
                continue
            offers[best] = again
            if again.gain >= before:
                return again if again.gain > _SMALL_GAIN else None
        return None

    def _offer(self, candidate: Candidate, donor: NodeUtilization) -> _Offer | None:
        """Return the gain to be expected, and the node to expect the pod on; None if it may go for nothing."""
        likely = self._destinations.likely(candidate.pod, candidate.usage)
        if isinstance(likely, Refused):
            return None
        # Any of these nodes may get it, so the gain is their mean; the loss is what the donor lacks then.
        gains = [round(self._gain(candidate, node), _DECIMALS) for node in likely]  # equal but for noise is equal
        taken = {name: -points for name, points in candidate.points.items()}
        loss = donor.short_of(self._kept, taken) - donor.short_of(self._kept, {})
        if round(min(gains) - loss, _DECIMALS) <= 0:
            return None
        expected = min(gains) if len(self._low.names) <= _FEW else max(gains)
        gain = round(sum(gains) / len(gains) - loss, _DECIMALS)
        return _Offer(gain, candidate, likely, likely[gains.index(expected)])

    def _gain(self, candidate: Candidate, destination: Node) -> float:
        """Return what a pod brings on one node: the points by which it fills that up to the mean."""
        node = self._destinations.on(destination)
        return node.short_of(self._band.mean, {}) - node.short_of(self._band.mean, node.points(candidate.usage))
