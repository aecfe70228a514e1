"""Offers: pods that may go, with the nodes where they would do most.

What a move brings is what its two nodes cost less afterwards (see `rebalancer.balancing.steering.goal`).  It is worth
making if one of them is outside its band, if it brings the least gain, and if it lifts no node above its band.  What
brings most goes first; among moves that bring about as much those of lower priority and QoS, then older pods.

To look at every pod for every node would take too long where there are thousands: the nodes that cost most are looked at
as sources, and those with most room as destinations.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import floor, log

from rebalancer.balancing.candidates import Candidate
from rebalancer.balancing.steering.fullness import Fullness
from rebalancer.balancing.steering.goal import Goal, minus, plus
from rebalancer.cluster.node import Node
from rebalancer.eviction.order import eviction_class

#: So many sources and so many destinations are compared with each other.
_MOST_SOURCES = 12
_MOST_DESTINATIONS = 12
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
    def order(self) -> tuple[object, ...]:
        """What comes first is made first."""
        pod = self.candidate.pod
        return (-floor(log(self.gain, _ABOUT)), eviction_class(pod), -self.gain, pod.age_order, self.destination)


class Offers:
    """Finds what brings most.

    Args:
        goal: what is aimed at.
        fullness: the nodes as they are.
        least: points that a move has to bring.
    """

    def __init__(self, goal: Goal, fullness: Fullness, least: float) -> None:
        self._goal = goal
        self._fullness = fullness
        self._least = least

    def offers(self, candidates: Iterable[Candidate], destinations: Iterable[str]) -> list[Offer]:
        """Return what these pods would bring on these nodes, what comes first at first."""
        found: list[Offer] = []
        receivers = [(name, self._goal.is_below(self._fullness.peak(name))) for name in destinations]
        for candidate in candidates:
            source = candidate.pod.node
            fill = self._fullness.fill(source)
            relief = self._goal.cost(fill) - self._goal.cost(minus(fill, self._fullness.points(candidate.pod, source)))
            is_over = self._goal.is_over(fill)
            for name, is_below in receivers:
                if (is_over or is_below) and name != source:
                    gain = relief + self._filled(candidate, name)
                    if gain >= self._least:
                        found.append(Offer(candidate, name, gain))
        return sorted(found, key=lambda offer: offer.order)

    def _filled(self, candidate: Candidate, name: str) -> float:
        """Return how much less the destination costs, which is negative where the pod lifts it out of its band."""
        before = self._fullness.peak(name)
        after = plus(before, self._fullness.points(candidate.pod, name))
        return self._goal.cost(before) - self._goal.cost(after) if not self._goal.is_over(after) else float("-inf")

    def worst(self, nodes: Iterable[Node]) -> Iterator[str]:
        """Yield the nodes that should lose pods, what costs most first: those over, else those above the mean."""
        goal, fill = self._goal, self._fullness.fill
        names = sorted((node.name for node in nodes), key=lambda name: (-goal.cost(fill(name)), name))
        over = [name for name in names if goal.is_over(fill(name))]
        donors = [name for name in names if name not in set(over) and self._is_above_mean(name)]
        yield from [*over, *donors][: max(_MOST_SOURCES, min(len(over), 2 * _MOST_SOURCES))]

    def emptiest(self, nodes: Iterable[Node]) -> Iterator[str]:
        """Yield the nodes with most room, those below their band first."""
        ranked = sorted((self._fullness_of(node.name), node.name) for node in nodes)
        yield from [name for _, name in ranked[:_MOST_DESTINATIONS]]

    def _is_above_mean(self, name: str) -> bool:
        return any(each > mean for each, mean in zip(self._fullness.fill(name), self._goal.mean, strict=True))

    def _fullness_of(self, name: str) -> tuple[bool, float]:
        """Return where a node stands among destinations: whether it is in its band, and its worst resource's distance
        above the mean."""
        peak = self._fullness.peak(name)
        return (not self._goal.is_below(peak), max(p - m for p, m in zip(peak, self._goal.mean, strict=True)))
