"""Filling: after relief, nodes above the mean donate pods to those below a band around it, which are as wrong.

1. Filling goes in rounds, each with a ceiling for destinations and a least gain of a move.  All gains are tried with
   one ceiling before the next ceiling.  Low nodes that none of the donors' pods can run on do not count.
2. In a round the nodes above the mean donate in turn, the one furthest above it first.
3. Of a donor's pods the one with the largest gain goes: how many of the points up to the mean it fills where it would
   land (the average, if it may land on several nodes), less the points that the donor lacks afterwards.  No costly pod
   goes while a cheaper one of its node brings anything.

An example: the mean is 40 %, the band 30 to 60 %.  n1 is at 58 %, n2 at 40 %, n3 at 22 %: n3 is low, and n1 donates.
n3 lacks 18 points up to the mean.  With a pod of 8 points from n1 it would lack 10: the gain is 8.  n1 would be at 50 %
and lack nothing.  With a pod of 25 points n3 would be at 47 %, so it gains 18; but n1 would be at 33 %, two points
below the 35 % that a donor keeps: the gain is 16.  The second pod brings more and goes; now n3 is in its band.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, product
from math import ceil

from rebalancer.balancing.candidates import Candidate
from rebalancer.balancing.relief import Moves, furthest_first, node_is_spent
from rebalancer.balancing.utilization import Band, NodeUtilization, Percentages
from rebalancer.cluster.node import Node
from rebalancer.eviction.verdict import Refused
from rebalancer.scheduling.eligibility import EligibleNodes

#: How far above the mean, as a share of the way to the band's edge, destinations are filled at first, and later.  Not
#: to the edge itself, since where a pod lands is likely and not certain.
FIRST_CEILING = 0.5
LAST_CEILING = 0.9
#: To the edge at last: the scheduler may want all pods on one node, which is full of one resource and low in another.
_CEILINGS = (FIRST_CEILING, LAST_CEILING, 1.0)
#: What a donor keeps, as a share of the way from the band's lower edge to the mean: below that it lacks points.
_KEPT = 0.5
#: The least gain of a move, in points, round by round; small ones only while a node is below its band.
_SMALL_GAIN = 0.3
_GAINS = (4.0, 2.0, 1.0, _SMALL_GAIN)
#: Where several nodes may win, which one a pod is expected on is a guess.  While at most so many nodes are below the
#: band, it is the one where the pod brings least; otherwise the search would stop before the last node is filled.
#: While more are, it is the one where it brings most; otherwise some would be filled twice.
_FEW = 3
#: The most tries of a cycle: so many per node below its band, and so many per node of the cluster.  Where several nodes
#: may win, each move makes the next ones less certain; the next cycle sees where these landed.
_TRIES_PER_LOW_NODE = 8
_TRIES_PER_NODE = 0.8
#: So many nodes in a row that have nothing to donate end the search: large clusters have thousands.
_MOST_IDLE_DONORS = 20
_DECIMALS = 9  # smaller differences are floating-point noise
_NOISE = 1e-6  # as is what two ways to add up the same points may differ by


@dataclass(frozen=True, slots=True)
class _Offer:
    """A pod that may go, what that brings, in points, and the nodes it may land on, the one to expect it on first.

    Until it is known where the pod may land there are no nodes, and the gain is the most that the pod can bring.
    """

    gain: float
    candidate: Candidate
    likely: Sequence[Node] = ()


class Filling:
    """Moves pods from nodes above the mean to where they are needed, so that nodes are in their band."""

    def __init__(self, moves: Moves, band: Band) -> None:
        self._moves = moves
        self._destinations = destinations = moves.destinations
        self._band = band
        self._kept = band.below(_KEPT)
        self._low: set[str] = set()  # the nodes below the band
        self._wanting: set[str] = set()  # and those below the mean
        for node in destinations.known.values():
            self._look_at(node)
        self._tries_left = 0
        self._most_lacking: Percentages = {}
        #: By resource, how many points one unit of it is on the smallest node.
        self._points_each = {
            name: max((each.points({name: 1}).get(name, 0.0) for each in destinations.known.values()), default=0.0)
            for name in band.mean
        }

    def run(self, sources: Iterable[NodeUtilization]) -> None:
        """Fill nodes while some are below the band; do nothing if the usage of pods is not known."""
        if not self._moves.worth:
            return
        donors = furthest_first(sources, self._band.mean)
        self._low -= self._out_of_reach(donors)
        nodes = len(self._destinations.known)
        self._tries_left = min(_TRIES_PER_LOW_NODE * len(self._low), ceil(_TRIES_PER_NODE * nodes))
        # Round by round: first up to a low ceiling the moves of large gain, then smaller ones; then a higher ceiling.
        for ceilings, least in product(map(self._band.above, _CEILINGS), _GAINS):
            if self._low:
                self._destinations.set_ceilings(ceilings)
                self._collect(donors, least)

    def _out_of_reach(self, donors: Iterable[NodeUtilization]) -> set[str]:
        """Return the low nodes that none of the donors' pods can run on: taints, selectors and affinity see to that."""
        out, selection = self._low, self._moves.selection
        constraints = selection.cluster.index(EligibleNodes).constraints
        for group in chain.from_iterable(selection.groups(donor, None) for donor in donors):
            if not (out := out.difference(*(constraints(each.pod.spec).suiting for each in group))):
                break
        return out

    def _collect(self, donors: Iterable[NodeUtilization], least: float) -> None:
        self._most_lacking = self._lacked_by(self._destinations.known.values())
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
        groups = list(self._moves.selection.groups(donor, None))
        for number, group in enumerate(groups, 1):
            offers = [_Offer(self._most(candidate, donor), candidate) for candidate in group]
            # Whether a pod brings less than enough matters only where a costlier one may bring enough.
            is_last = all(self._most(each, donor) <= least for each in chain.from_iterable(groups[number:]))
            floor = least if is_last else _SMALL_GAIN
            while self._tries_left and waiting and (best := self._best(offers, donor, floor)):
                if best.gain <= least:
                    return  # a cheaper pod still brings something, in a later round: the costly ones wait for that
                offers.remove(best)
                if self._moves.is_spent(donor) or self._move(best, donor):
                    return
                self._most_lacking = self._lacked_by([donor], self._most_lacking)

    def _look_at(self, node: NodeUtilization) -> None:
        for names, floors in ((self._low, self._band.low), (self._wanting, self._band.mean)):
            (names.add if node.short_of(floors) else names.discard)(node.node.name)

    def _move(self, offer: _Offer, donor: NodeUtilization) -> bool:
        """Move a pod, and return whether its node may lose no more."""
        verdict = self._moves.move(offer.candidate, donor, self._band.mean, offer.likely)
        self._look_at(self._destinations.known[offer.likely[0].name])
        self._tries_left -= verdict.leaving
        return node_is_spent(verdict)

    def _best(self, offers: list[_Offer], donor: NodeUtilization, floor: float) -> _Offer | None:
        """Return the offer that brings most, of equal ones the oldest pod's; None if none brings more than the floor.

        What it brings now takes a question to the scheduler.  So only the best is worked out, and others if it got
        worse.  An example: three pods could bring 8, 8 and 5 points at most.  The first brings 6 where it would land,
        so the second is asked: 7, which is more than the third can bring.  The second goes.
        """
        while offers:
            best = max(range(len(offers)), key=lambda index: offers[index].gain)
            before = offers[best].gain
            if before <= floor:
                return None
            again = self._offer(offers[best].candidate, donor)
            if again is None:
                del offers[best]
                continue
            offers[best] = again
            if again.gain >= before - _NOISE:
                return again if again.gain > floor else None
        return None

    def _most(self, candidate: Candidate, donor: NodeUtilization) -> float:
        """Return what a pod can bring at most: on the node that lacks most of each resource."""
        used = {name: amount for name in self._most_lacking if (amount := candidate.usage.get(name, 0))}
        most = sum(min(amount * self._points_each[name], self._most_lacking[name]) for name, amount in used.items())
        return most - self._loss(candidate, donor)

    def _loss(self, candidate: Candidate, donor: NodeUtilization) -> float:
        """Return how many points the donor lacks once a pod has left, beyond those that it lacks now."""
        taken = {name: -points for name, points in candidate.points.items()}
        return donor.short_of(self._kept, taken) - donor.short_of(self._kept)

    def _lacked_by(self, nodes: Iterable[NodeUtilization], before: Percentages | None = None) -> dict[str, float]:
        """Return, by resource, the most that one of some nodes lacks up to the mean, and not less than before."""
        most = dict(before or dict.fromkeys(self._band.mean, 0.0))
        for node in nodes:
            for name, mean in self._band.mean.items():
                most[name] = max(most[name], mean - (node.percent(name) or 0.0))
        return most

    def _offer(self, candidate: Candidate, donor: NodeUtilization) -> _Offer | None:
        """Return what a pod is expected to bring where it may land; None if the move may bring nothing."""
        likely = self._destinations.likely(candidate.pod)
        if isinstance(likely, Refused):
            return None
        # Any of these nodes may get it, so the gain is their mean; the loss is what the donor lacks then.
        gains = [round(self._gain(candidate, node), _DECIMALS) for node in likely]  # without floating-point noise
        loss = self._loss(candidate, donor)
        if round(min(gains) - loss, _DECIMALS) <= 0:
            return None
        expected = min(gains) if len(self._low) <= _FEW else max(gains)
        equal = [node for node, gain in zip(likely, gains, strict=True) if gain == expected]
        gain = round(sum(gains) / len(gains) - loss, _DECIMALS)
        lacking = max(equal, key=lambda node: self._destinations.known[node.name].short_of(self._band.mean))
        return _Offer(gain, candidate, [lacking, *(node for node in likely if node is not lacking)])

    def _gain(self, candidate: Candidate, destination: Node) -> float:
        """Return what a pod brings on one node: the points by which it fills that up to the mean."""
        node = self._destinations.known[destination.name]
        return node.short_of(self._band.mean) - node.short_of(self._band.mean, node.points(candidate.usage))
