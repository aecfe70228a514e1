"""Which of the pods that must not be next to each other should go: the fewest, then the cheapest.

Pods are the vertices of a graph, and two that conflict are its edges, whichever of them says so.  Pods whose going ends
every conflict are a vertex cover of it.  A pod that may not go decides for its neighbours: they all have to.

That is the minimum weighted vertex cover: the vertices of least weight that touch every edge of a graph.  A set of
vertices is an integer in which bit `v` stands for vertex `v`: sets of thousands unite and intersect fast.

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
from typing import NamedTuple

from rebalancer.cluster.pod import Pod
from rebalancer.eviction.order import cheapest_first, eviction_class

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


class Clash(NamedTuple):
    """Pods of one topology domain: each of the declarers wants to be apart from each of the unwanted.

    A pod may be both; pods of one name do not conflict.
    """

    declarers: Sequence[Pod]
    unwanted: Sequence[Pod]


class Chosen(NamedTuple):
    """A pod that should go, and the pods that stay and want to be apart from it."""

    pod: Pod
    in_the_way_of: Sequence[Pod]


def fewest(clashes: Iterable[Clash], rank: Callable[[Pod], int], may_go: Callable[[Pod], bool]) -> list[Chosen]:
    """Return the fewest pods whose going ends all conflicts that can be ended; of equally few the cheapest.

    Cheaper is what has fewer pods in the costliest class (see `rebalancer.eviction.order`), then in the next; then what
    has the older pods.  Conflicts between two pods that may not go are left.  Where more than 40 pods hang together and
    are not alike, there may be up to twice as many as needed, but no more than the descheduler would evict.

    Args:
        clashes: the conflicts.
        rank: returns when the descheduler's rule would ask for a pod; the result has this order.
        may_go: returns whether a pod may go; asked once for each pod in conflict.
    """
    groups = (_Conflicts(clashes, rank) for clashes in _connected(clashes))
    return sorted((each for group in groups for each in group.fewest(may_go)), key=lambda each: rank(each.pod))


class _Conflicts:
    """The graph of clashes that share pods; its vertices are numbers in the order of the ranks."""

    def __init__(self, clashes: Sequence[Clash], rank: Callable[[Pod], int]) -> None:
        self._pods = sorted({pod for clash in clashes for side in clash for pod in side}, key=rank)
        number = {pod: vertex for vertex, pod in enumerate(self._pods)}
        self._unwanted, self._wanted_away = [0] * len(number), [0] * len(number)
        for clash in clashes:
            declarers, unwanted = (united(1 << number[pod] for pod in side) for side in clash)
            for vertex in members(declarers):
                self._unwanted[vertex] |= unwanted
            for vertex in members(unwanted):
                self._wanted_away[vertex] |= declarers
        self._forget_namesakes()

    def fewest(self, may_go: Callable[[Pod], bool]) -> Iterator[Chosen]:
        """Yield the pods that should go."""
        neighbours = [ours | theirs for ours, theirs in zip(self._unwanted, self._wanted_away, strict=True)]
        free = united(1 << vertex for vertex, pod in enumerate(self._pods) if neighbours[vertex] and may_go(pod))
        # The neighbours of a pod that may not go have to; between the others there is a choice.
        going = united(1 << vertex for vertex in members(free) if neighbours[vertex] & ~free)
        known = self._declarers_first(free)
        graph = Graph(_weights(self._pods), neighbours)
        for part in graph.components(free & ~going):
            going |= least_cover(graph, part, known & part)
        for vertex in members(going):
            stay = members(self._wanted_away[vertex] & ~going)
            yield Chosen(self._pods[vertex], [self._pods[each] for each in stay])

    def _forget_namesakes(self) -> None:
        named: defaultdict[str, int] = defaultdict(int)
        for vertex, pod in enumerate(self._pods):
            named[pod.name] |= 1 << vertex
        for vertex, pod in enumerate(self._pods):
            self._unwanted[vertex] &= ~named[pod.name]
            self._wanted_away[vertex] &= ~named[pod.name]

    def _declarers_first(self, free: int) -> int:
        """Return the pods that go by the descheduler's rule: one by one those that still break a term of their own."""
        gone = 0
        for vertex in members(free):
            if self._unwanted[vertex] & ~gone:
                gone |= 1 << vertex
        return gone


def _connected(clashes: Iterable[Clash]) -> Iterator[list[Clash]]:
    """Yield the clashes in groups: two that share a pod are in one."""
    todo = dict(enumerate(clashes))
    of_pod: defaultdict[Pod, list[int]] = defaultdict(list)
    for number, clash in todo.items():
        for pod in {pod for side in clash for pod in side}:
            of_pod[pod].append(number)
    while todo:
        numbers, group = [next(iter(todo))], []
        while numbers:
            number = numbers.pop()
            if number in todo:
                clash = todo.pop(number)
                group.append(clash)
                numbers += [other for side in clash for pod in side for other in of_pod.pop(pod, ())]
        yield group


def _weights(pods: Sequence[Pod]) -> list[int]:
    """Return weights whose sums compare sets of pods: by number, then class by class, then by the oldest.

    In the sum for a set the lowest bits say which pods it has, in the order of cost.  Above them there is a count of
    its pods for each class, the costliest on top, and above these the number of all its pods.
    """
    ranks = {pod: rank for rank, pod in enumerate(cheapest_first(pods))}
    classes = {each: place for place, each in enumerate(sorted({eviction_class(pod) for pod in pods}))}
    bits, lowest = len(pods).bit_length(), len(pods)
    one_more = 1 << (lowest + bits * len(classes) + 1)
    return [one_more + (1 << (lowest + bits * classes[eviction_class(pod)])) + (1 << ranks[pod]) for pod in pods]
