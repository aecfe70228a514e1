"""Offers: pods that may go, with the nodes where they would do most.

A move brings as many points as its two nodes cost less afterwards (see `rebalancer.balancing.steering.goal`).  It must
not lift a node above its band.  One of its nodes must be outside its band now, or have been outside it before, so that
it may be brought in as far as the goal says.  If one is outside now, half the least gain is enough, since the last node
outside may need a small move; otherwise the move has to bring the least gain.  The move that brings most goes first.
Among moves that bring about as much, pods of lower priority and QoS go first, then the larger gain, then older pods.

With thousands of nodes it would take too long to look at every pod for every node.  So the fullest nodes are looked
at as sources, and those with most room as destinations.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from math import floor, log

from rebalancer.balancing.candidates import Candidate
from rebalancer.balancing.steering.fullness import Fullness
from rebalancer.balancing.steering.goal import Fill, Goal, minus, plus
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.eviction.order import eviction_class

#: So many sources and destinations are looked at, and so many pairs of them.
_MOST_SOURCES = 20
_MOST_DESTINATIONS = 12
_MOST_PAIRS = 240
#: The share of the least gain that is enough for a move of a node outside its band.
_OUTSIDE = 0.5
#: Gains that differ by less than this factor are about the same.
_ABOUT = 1.1


@dataclass(frozen=True, slots=True)
class Offer:
    """A pod that may go, where to, and what that brings.

    Attributes:
        gain: points by which its two nodes come nearer to their bands, and a little for evenness.
    """

    candidate: Candidate
    destination: str
    gain: float

    @property
    def what(self) -> tuple[Pod, str]:
        """The pod, and where to."""
        return self.candidate.pod, self.destination

    def order(self, best: float) -> tuple[object, ...]:
        """Return the key to sort offers by, given the gain of the best: the first is made first."""
        pod, behind = self.candidate.pod, floor(log(best / self.gain, _ABOUT))
        return (behind, eviction_class(pod), -self.gain, pod.age_order, self.destination)


@dataclass(frozen=True, slots=True)
class _Side:
    """A node at one end of a move, as it is before it."""

    name: str
    fill: Fill
    outside: float
    unevenness: float
    is_out: bool
    is_roused: bool


class Offers:
    """Finds the moves that bring most.

    Args:
        goal: what is aimed at.
        fullness: the nodes as they are.
        least: points that a move has to bring for nodes within their band; half of that for others.
    """

    def __init__(self, goal: Goal, fullness: Fullness, least: float) -> None:
        self._goal = goal
        self._fullness = fullness
        self._least = least
        self._least_outside = least * _OUTSIDE
        self._roused: set[str] = set()

    def offers(self, candidates: Iterable[Candidate], destinations: Iterable[str]) -> list[Offer]:
        """Return what these pods would bring on these nodes, in the order in which moves are made."""
        receivers = [self._side(name, self._fullness.peak(name)) for name in destinations]
        source = cache(lambda name: self._side(name, self._fullness.fill(name)))
        found = [offer for each in candidates for offer in self._of(each, source(each.pod.node), receivers)]
        best = max((offer.gain for offer in found), default=0.0)
        return sorted(found, key=lambda offer: offer.order(best))

    def _of(self, candidate: Candidate, source: _Side, receivers: Iterable[_Side]) -> Iterator[Offer]:
        left = minus(source.fill, self._fullness.points(candidate.pod, source.name))
        relief = source.outside - self._goal.outside(left)
        evened = source.unevenness - self._goal.unevenness(left)
        for receiver in receivers:
            if receiver.name == source.name or not (source.is_roused or receiver.is_roused):
                continue
            least = self._least_outside if source.is_out or receiver.is_out else self._least
            most = relief + receiver.outside
            if most < least:
                continue
            joined = plus(receiver.fill, self._fullness.points(candidate.pod, receiver.name))
            brought = most - self._goal.outside(joined)
            if brought >= least and not self._goal.is_over(joined):
                gain = brought + evened + receiver.unevenness - self._goal.unevenness(joined)
                yield Offer(candidate, receiver.name, max(gain, least))

    def _side(self, name: str, fill: Fill) -> _Side:
        goal = self._goal
        return _Side(name, fill, goal.outside(fill), goal.unevenness(fill), self._is_out(name), self._is_roused(name))

    def givers(self) -> list[str]:
        """Return all nodes as sources: first those that are furthest above their band, then those above the mean.

        Nodes below their band come last: they cost much, but they have nothing to give.
        """
        return sorted(self._fullness.sources, key=self._as_source)

    def _as_source(self, name: str) -> tuple[float, float, str]:
        fill = self._fullness.fill(name)
        return (-self._goal.above(fill), -self._goal.highest(fill), name)

    def compared(self, nodes: Iterable[Node], receivers: Iterable[Node]) -> list[tuple[list[str], list[str]]]:
        """Return which nodes to compare as sources with which as destinations.

        One of the two has to be roused, which means that it is, or was, outside its band.  So there are two pairs of
        lists: roused sources with the emptiest nodes, and the fullest nodes with roused destinations.
        """
        sources = sorted((node.name for node in nodes), key=self._as_source)
        destinations = [each[-1] for each in sorted((*self._room(node.name), node.name) for node in receivers)]
        givers = [name for name in sources if self._is_roused(name)][:_MOST_SOURCES]
        takers = [name for name in destinations if self._is_roused(name)][:_MOST_DESTINATIONS]
        return [(givers, destinations[:_MOST_DESTINATIONS]), (sources[: _MOST_PAIRS // max(len(takers), 1)], takers)]

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
