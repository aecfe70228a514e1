"""Offers: pods that may go, with the nodes where they would do most.

A move brings as many points as its two nodes cost less afterwards (see `rebalancer.balancing.steering.goal`).  It must
not lift a node above its band.  One of its nodes must be outside its band now, or have been outside it before, so that
it may be brought in as far as the goal says.  If one is outside now, half the least gain is enough, since the last node
outside may need a small move; otherwise the move has to bring the least gain.  The move that brings most goes first.
Among moves that bring about as much, pods of lower priority and QoS go first, then the larger gain, then older pods.

With thousands of nodes it would take too long to look at every pod for every node.  So the fullest nodes are looked
at as sources, and those with most room as destinations.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import floor, log
from operator import attrgetter

import msgspec

from rebalancer.balancing.candidates import Candidate
from rebalancer.balancing.moves import FREE, Deal, Worth
from rebalancer.balancing.steering.fullness import Fullness
from rebalancer.balancing.steering.goal import Fill, Goal, minus, plus
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.eviction.evict import eviction_class

#: So many sources and destinations are looked at, and so many pairs of them.
_MOST_SOURCES = 20
MOST_DESTINATIONS = 12
_MOST_PAIRS = 240
#: The share of the least gain that is enough for a move of a node outside its band.
_OUTSIDE = 0.5
#: Gains that differ by less than this factor are about the same.
_ABOUT = 1.1


class Offer(msgspec.Struct, frozen=True, gc=False):
    """A pod that may go, where to, and what that brings.

    Attributes:
        gain: points by which its two nodes come nearer to their bands, and a little for evenness.
        deal: what that is worth, and what it costs, by what is remembered.
    """

    candidate: Candidate
    destination: str
    gain: float
    deal: Deal = FREE

    @property
    def order(self) -> tuple[object, ...]:
        """The key to sort offers by that bring about the same: the first is made first."""
        pod = self.candidate.pod
        return (eviction_class(pod), -self.gain, pod.age_order, self.destination)


def in_order(offers: Iterable[Offer]) -> Iterator[Offer]:
    """Yield offers in the order in which moves are made; those that bring less are sorted when they are asked for."""
    by_gain = sorted(offers, key=attrgetter("gain"), reverse=True)
    for _, about_the_same in groupby(by_gain, key=lambda each: floor(log(by_gain[0].gain / each.gain, _ABOUT))):
        yield from sorted(about_the_same, key=attrgetter("order"))


@dataclass(frozen=True, eq=False, slots=True)
class _Side:
    """A node at one end of a move, as it is before it.

    Attributes:
        given: by pod, the points that this node costs less without it: outside its band, and for evenness.
        offers: by the other node as it was then, what pods of this one bring there; None where that is too little.
    """

    name: str
    fill: Fill
    outside: float
    unevenness: float
    is_out: bool
    is_roused: bool
    given: dict[Pod, tuple[float, float]] = field(default_factory=dict)
    offers: "dict[str, tuple[_Side, dict[Pod, Offer | None]]]" = field(default_factory=dict)


class Offers:
    """Finds the moves that bring most.

    What a move brings depends on its two nodes alone, so it is kept until one of them changes.

    Args:
        goal: what is aimed at.
        fullness: the nodes as they are.
        least: points that a move has to bring for nodes within their band; half of that for others.
        worth: says which moves gain more than they cost.
    """

    def __init__(self, goal: Goal, fullness: Fullness, least: float, worth: Worth) -> None:
        self._goal = goal
        self._fullness = fullness
        self._worth = worth
        self.unworthy: dict[Pod, Deal] = {}
        self._least = least
        self._least_outside = least * _OUTSIDE
        self._roused: set[str] = set()
        self._sources: dict[str, _Side] = {}
        self._destinations: dict[str, _Side] = {}
        self._as_sources: dict[str, tuple[Fill, tuple[float, float, str]]] = {}

    def offers(self, candidates: Iterable[Candidate], destinations: Iterable[str]) -> list[Offer]:
        """Return what these pods, node by node, would bring on these nodes."""
        sides = [self._side(self._destinations, name, self._fullness.peak(name)) for name in destinations]
        found: list[Offer] = []
        for name, group in groupby(candidates, key=lambda each: each.pod.node):
            source, pods = self._side(self._sources, name, self._fullness.fill(name)), list(group)
            for destination in sides:
                if destination.name != name and (source.is_roused or destination.is_roused):
                    found += self._between(source, destination, pods)
        return found

    def _between(self, source: _Side, destination: _Side, candidates: Sequence[Candidate]) -> list[Offer]:
        least = self._least_outside if source.is_out or destination.is_out else self._least
        if source.outside + destination.outside < least:
            return []
        as_it_was, known = source.offers.get(destination.name, (None, {}))
        if as_it_was is not destination:
            known = {}
            source.offers[destination.name] = (destination, known)
        if missing := [each for each in candidates if each.pod not in known]:
            known.update(dict.fromkeys([each.pod for each in missing]))
            known.update((each.candidate.pod, each) for each in self._worked_out(missing, source, destination, least))
        return [offer for each in candidates if (offer := known[each.pod])]

    def _worked_out(
        self, candidates: Sequence[Candidate], source: _Side, destination: _Side, least: float
    ) -> Iterator[Offer]:
        """Yield what pods would bring, without those that bring less than the least or too much for the destination."""
        goal, nodes = self._goal, self._fullness.sources
        given = [
            (each, given) for each, given in self._given(candidates, source) if given[0] + destination.outside >= least
        ]
        if not given:
            return
        joined = plus(destination.fill, self._fullness.arrivals([each.pod for each, _ in given], destination.name))
        columns = (goal.any_over(joined), goal.all_outside(joined), goal.all_unevenness(joined))
        for (candidate, (relief, evened)), is_over, outside, unevenness in zip(given, *columns, strict=True):
            brought = relief + destination.outside - outside
            if brought < least or is_over:
                continue
            deal = self._worth.deal(candidate, nodes[source.name], nodes[destination.name])
            if deal.refusal:
                known = self.unworthy.get(candidate.pod, deal)
                self.unworthy[candidate.pod] = max(deal, known, key=lambda each: each.gain)
            else:
                gain = brought + evened + destination.unevenness - unevenness
                yield Offer(candidate, destination.name, max(gain, least), deal)

    def _given(self, candidates: Sequence[Candidate], source: _Side) -> Iterator[tuple[Candidate, tuple[float, float]]]:
        """Return the candidates, each with the points that their node costs less without it."""
        goal, given = self._goal, source.given
        if missing := [each.pod for each in candidates if each.pod not in given]:
            left = minus(source.fill, self._fullness.points(missing, source.name))
            columns = (goal.all_outside(left), goal.all_unevenness(left))
            for pod, outside, unevenness in zip(missing, *columns, strict=True):
                given[pod] = (source.outside - outside, source.unevenness - unevenness)
        return ((each, given[each.pod]) for each in candidates)

    def _side(self, sides: dict[str, _Side], name: str, fill: Fill) -> _Side:
        """Return a node as it is; the same object as before where nothing has changed."""
        is_out, is_roused = self._is_out(name), self._is_roused(name)
        known = sides.get(name)
        if known is None or (known.fill, known.is_out, known.is_roused) != (fill, is_out, is_roused):
            goal = self._goal
            known = _Side(name, fill, goal.outside(fill), goal.unevenness(fill), is_out, is_roused)
            sides[name] = known
        return known

    def givers(self) -> list[str]:
        """Return all nodes as sources: first those that are furthest above their band, then those above the mean.

        Nodes below their band come last: they cost much, but they have nothing to give.
        """
        return sorted(self._fullness.sources, key=self._as_source)

    def _as_source(self, name: str) -> tuple[float, float, str]:
        fill = self._fullness.fill(name)
        known = self._as_sources.get(name)
        if known is None or known[0] is not fill:
            known = self._as_sources[name] = (fill, (-self._goal.above(fill), -self._goal.highest(fill), name))
        return known[1]

    def takers(self, nodes: Iterable[Node]) -> list[str]:
        """Return these nodes as destinations: those with most room first."""
        return [each[-1] for each in sorted((*self._room(node.name), node.name) for node in nodes)]

    def sources(self, givers: Sequence[str], takers: Sequence[str]) -> list[str]:
        """Return which of these nodes to look at as sources, for these destinations; both as they are ordered above.

        One node of a move has to be roused, which means that it is, or was, outside its band.  So there are roused
        sources, and for roused destinations the fullest nodes.
        """
        roused = [name for name in givers if self._is_roused(name)][:_MOST_SOURCES]
        count = min(sum(map(self._is_roused, takers)), MOST_DESTINATIONS)
        return list(dict.fromkeys((*roused, *(givers[: _MOST_PAIRS // count] if count else ()))))

    def destinations(self, takers: Sequence[str], most: int) -> list[str]:
        """Return which of these nodes to look at as destinations: the emptiest, and the emptiest roused ones."""
        roused = [name for name in takers if self._is_roused(name)]
        return list(dict.fromkeys((*takers[:most], *roused[:most])))

    def _room(self, name: str) -> tuple[bool, float]:
        """Return the place among destinations: those below their band first, then by the fullest resource."""
        peak = self._fullness.peak(name)
        return (not self._goal.is_below(peak), self._goal.highest(peak))

    def _is_roused(self, name: str) -> bool:
        """Return whether a node is outside its band, or was: then it is brought in as far as the goal says."""
        return self._is_out(name) or name in self._roused

    def _is_out(self, name: str) -> bool:
        out = self._goal.is_over(self._fullness.fill(name)) or self._goal.is_below(self._fullness.peak(name))
        if out:
            self._roused.add(name)
        return out
