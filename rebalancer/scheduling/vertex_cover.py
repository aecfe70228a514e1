"""Minimum weighted vertex cover: the vertices of least weight that touch every edge of a graph.

A set of vertices is an integer in which bit `v` stands for vertex `v`: sets of thousands unite and intersect fast.

1. Twins are told apart first.  Of neighbours that have the same other neighbours all but the heaviest go: replicas that
   dislike each other.  Vertices with the same neighbours that are not neighbours of each other go together or not at
   all: replicas that one pod is in the way of.  They become one vertex.
2. What is left is searched in full if it has at most 40 vertices: a vertex goes, or else all its neighbours do.
3. A larger rest is covered by local ratio (Bar-Yehuda and Even, 1985): each edge takes from both its ends as much as
   the lighter one has left, and who has nothing left goes.  Every edge has to be paid for by any cover, so this one
   weighs at most twice as much as the lightest.

An example: a - b, a - c, b - c, c - d, all of weight 1.  a and b are twins: a goes.  Then b and d have the neighbour c
and are one vertex of weight 2; c and that are twins again, and c goes.  The cover is a and c.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

_SEARCHED = 40


def members(vertices: int) -> Iterator[int]:
    """Yield the vertices of a set, in ascending order."""
    while vertices:
        lowest = vertices & -vertices
        yield lowest.bit_length() - 1
        vertices ^= lowest


def united(sets: Iterable[int]) -> int:
    """Return the union of sets of vertices."""
    return reduce(or_, sets, 0)


@dataclass(frozen=True, slots=True)
class Graph:
    """Vertices with their weights and, as sets, their neighbours."""

    weights: Sequence[int]
    neighbours: Sequence[int]

    def weight(self, vertices: int) -> int:
        """Return the sum of the weights."""
        return sum(self.weights[each] for each in members(vertices))

    def components(self, vertices: int) -> Iterator[int]:
        """Yield the connected parts of the graph that these vertices make up, with two vertices or more."""
        while vertices:
            part = fringe = vertices & -vertices
            while fringe:
                found = united(self.neighbours[each] for each in members(fringe)) & vertices
                fringe, part = found & ~part, part | found
            vertices &= ~part
            if part.bit_count() > 1:
                yield part


def least_cover(graph: Graph, vertices: int, known: int) -> int:
    """Return the cover of least weight of the graph that these vertices make up; no heavier one than the known.

    Args:
        graph: the weights of any two sets of its vertices differ, so that there is one answer only.
        vertices: those that count, connected with each other.
        known: a cover; it is the answer only where the graph is too large to search and nothing lighter is found.
    """
    kernel = _Kernel(graph, vertices)
    if kernel.rest.bit_count() <= _SEARCHED:
        return kernel.whole(_CoverSearch(kernel).best)
    return min(kernel.whole(_by_local_ratio(kernel)), known, key=graph.weight)


class _Kernel:
    """What is left of a graph without its twins.

    Attributes:
        rest: the vertices left.
        neighbours: their neighbours.
        weights: theirs, with those of the vertices that they stand for.
    """

    def __init__(self, graph: Graph, vertices: int) -> None:
        self.rest = vertices
        self.neighbours = graph.neighbours
        self.weights = {each: graph.weights[each] for each in members(vertices)}
        self._gone = 0
        self._stands_for = {each: 1 << each for each in members(vertices)}
        while self._drop_close_twins() or self._merge_distant_twins():
            pass

    def whole(self, cover: int) -> int:
        """Return the cover of the first graph that a cover of what is left stands for."""
        return self._gone | united(self._stands_for[each] for each in members(cover))

    def _drop_close_twins(self) -> bool:
        """Let all but the heaviest go of neighbours with the same other neighbours."""
        lighter = 0
        for twins in self._alike(lambda vertex: self.neighbours[vertex] | 1 << vertex):
            lighter |= united(1 << each for each in twins) ^ 1 << max(twins, key=self.weights.__getitem__)
        self._gone |= self.whole(lighter)
        self.rest &= ~lighter
        return bool(lighter)

    def _merge_distant_twins(self) -> bool:
        """Make one vertex of those with the same neighbours; vertices without any leave the graph."""
        before = self.rest
        for first, *others in self._alike(self.neighbours.__getitem__):
            if not self.neighbours[first] & self.rest:
                self.rest &= ~united(1 << each for each in (first, *others))
                continue
            self.weights[first] += sum(self.weights[each] for each in others)
            self._stands_for[first] |= united(self._stands_for[each] for each in others)
            self.rest &= ~united(1 << each for each in others)
        return self.rest != before

    def _alike(self, neighbourhood: Callable[[int], int]) -> list[list[int]]:
        groups: defaultdict[int, list[int]] = defaultdict(list)
        for vertex in members(self.rest):
            groups[neighbourhood(vertex) & self.rest].append(vertex)
        return list(groups.values())


class _CoverSearch:
    """The search through all covers, without those that cannot be lighter than the best one found.

    Attributes:
        best: the lightest cover.
    """

    def __init__(self, kernel: _Kernel) -> None:
        self._neighbours = kernel.neighbours
        self._weights = kernel.weights
        self.best = kernel.rest
        self._least = self._weight(kernel.rest)
        self._go_on(kernel.rest, 0, 0)

    def _go_on(self, vertices: int, cover: int, weight: int) -> None:
        """Add to a cover what covers the edges between these vertices."""
        if weight + self._at_least(vertices) >= self._least:
            return
        degrees = {each: (self._neighbours[each] & vertices).bit_count() for each in members(vertices)}
        busiest = max(degrees, key=degrees.__getitem__, default=-1)
        if not degrees.get(busiest):  # no edge is left, and perhaps no vertex
            self.best, self._least = cover, weight
            return
        near = self._neighbours[busiest] & vertices
        rest = vertices & ~(1 << busiest)
        # If it stays, all its neighbours go.
        self._go_on(rest, cover | 1 << busiest, weight + self._weights[busiest])
        self._go_on(rest & ~near, cover | near, weight + self._weight(near))

    def _at_least(self, vertices: int) -> int:
        """Return a bound: of vertices that are all neighbours of each other, all but one go."""
        bound = 0
        while vertices:
            clique, candidates = 0, vertices
            while candidates:
                chosen = candidates & -candidates
                clique |= chosen
                candidates &= self._neighbours[chosen.bit_length() - 1]
            weights = [self._weights[each] for each in members(clique)]
            bound += sum(weights) - max(weights)
            vertices &= ~clique
        return bound

    def _weight(self, vertices: int) -> int:
        return sum(self._weights[each] for each in members(vertices))


def _by_local_ratio(kernel: _Kernel) -> int:
    """Return a cover that weighs at most twice as much as the lightest, without what it can spare."""
    left, unpaid = dict(kernel.weights), kernel.rest
    for vertex in members(kernel.rest):
        for other in members(kernel.neighbours[vertex] & unpaid):
            price = min(left[vertex], left[other])
            for each in (vertex, other):
                left[each] -= price
                if not left[each]:
                    unpaid &= ~(1 << each)
            if not left[vertex]:
                break
    return _spared(kernel, kernel.rest & ~unpaid)


def _spared(kernel: _Kernel, cover: int) -> int:
    """Return a cover without those whose neighbours all go, the heaviest first."""
    for vertex in sorted(members(cover), key=kernel.weights.__getitem__, reverse=True):
        if not kernel.neighbours[vertex] & kernel.rest & ~cover:
            cover &= ~(1 << vertex)
    return cover
