"""Which of the pods that must not be next to each other should go: the fewest, then the cheapest.

Pods are the vertices of a graph, and two that conflict are its edges, whichever of them says so.  Pods whose going ends
every conflict are a vertex cover of it; the least of all weights is sought.  A pod that may not go decides for its
neighbours: they all have to.  For the others there is a search: a pod goes, or else all its neighbours do.

Example: a - b, a - c, b - c, c - d, all of weight 1.  If c goes, a - b is left, and a goes.  If c stays, a, b and d go,
which is more.  The cover is a and c.

A set of vertices is an integer in which bit `v` stands for vertex `v`: sets of thousands unite and intersect fast.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from operator import and_, or_
from typing import NamedTuple

from rebalancer.cluster.pod import Pod
from rebalancer.eviction.evict import cheapest_first, eviction_class

#: The search tries so many ways for each part of a graph: enough for 40 vertices as a rule, and for larger ones that
#: are much alike.
_MOST_TRIES = 2000


def members(vertices: int) -> Iterator[int]:
    """Yield the vertices of a set, in ascending order."""
    while vertices:
        lowest = vertices & -vertices
        yield lowest.bit_length() - 1
        vertices ^= lowest


def united(sets: Iterable[int]) -> int:
    """Return the union of sets of vertices."""
    return reduce(or_, sets, 0)


class Graph(NamedTuple):
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

    def least_cover(self, vertices: int, known: int) -> int:
        """Return the cover of least weight of the graph that these connected vertices make up.

        If it is too large to search, that is the lightest cover found, or the known one.
        """
        gone = self._close_twins(vertices)
        best, least = known, self.weight(known)
        ways = [(vertices & ~gone, gone, self.weight(gone))]
        for _ in range(_MOST_TRIES):
            if not ways:
                break
            rest, cover, weight = ways.pop()
            if weight + self._at_least(rest) >= least:
                continue
            degrees = {each: (self.neighbours[each] & rest).bit_count() for each in members(rest)}
            busiest = max(degrees, key=degrees.__getitem__, default=-1)
            if not degrees.get(busiest):  # no edge is left, and perhaps no vertex
                best, least = cover, weight
                continue
            near, others = self.neighbours[busiest] & rest, rest & ~(1 << busiest)
            ways.append((others & ~near, cover | near, weight + self.weight(near)))  # it stays, so all these go
            ways.append((others, cover | 1 << busiest, weight + self.weights[busiest]))  # it goes; tried first
        return best

    def _close_twins(self, vertices: int) -> int:
        """Return all but the heaviest of neighbours with the same other neighbours: they go in any case."""
        twins: defaultdict[int, int] = defaultdict(int)
        for vertex in members(vertices):
            twins[(self.neighbours[vertex] | 1 << vertex) & vertices] |= 1 << vertex
        heaviest = (max(members(each), key=self.weights.__getitem__) for each in twins.values())
        return vertices & ~united(1 << vertex for vertex in heaviest)

    def _at_least(self, vertices: int) -> int:
        """Return a bound: of vertices that are all neighbours of each other, all but one go."""
        bound = 0
        while vertices:
            clique, candidates = 0, vertices
            while candidates:
                chosen = candidates & -candidates
                clique |= chosen
                candidates &= self.neighbours[chosen.bit_length() - 1]
            bound += self.weight(clique) - max(self.weights[each] for each in members(clique))
            vertices &= ~clique
        return bound


#: Pods of one topology domain: each of the first, the declarers, wants to be apart from each of the second, the
#: unwanted.  A pod may be both; pods of one name do not conflict.
Clash = tuple[Sequence[Pod], Sequence[Pod]]
#: A pod that should go, and the pods that stay and want to be apart from it.
Chosen = tuple[Pod, Sequence[Pod]]


def fewest(clashes: Iterable[Clash], rank: Callable[[Pod], int], may_go: Callable[[Pod], bool]) -> list[Chosen]:
    """Return the fewest pods whose going ends all conflicts that can be ended; of equally few the cheapest.

    Cheaper is what has fewer pods in the costliest class (see `rebalancer.eviction.evict`), then in the next; then what
    has the older pods.  Conflicts between two pods that may not go are left.  Where many pods hang together and are not
    alike, there may be more than needed, but no more than the descheduler would evict.

    `rank` returns when the descheduler's rule would ask for a pod; the result has this order.  `may_go` is asked once
    for each pod in conflict.
    """
    clashes = list(clashes)
    pods = sorted({pod for clash in clashes for side in clash for pod in side}, key=rank)
    unwanted, wanted_away = _conflicts(clashes, pods)
    neighbours = list(map(or_, unwanted, wanted_away))
    free = united(1 << vertex for vertex, pod in enumerate(pods) if neighbours[vertex] and may_go(pod))
    # The neighbours of a pod that may not go have to; between the others there is a choice.
    going = united(1 << vertex for vertex in members(free) if neighbours[vertex] & ~free)
    known = 0  # what goes by the descheduler's rule: one by one those that still break a term of their own
    for vertex in members(free):
        if unwanted[vertex] & ~known:
            known |= 1 << vertex
    graph = Graph(_weights(pods), neighbours)
    for part in list(graph.components(free & ~going)):
        going |= graph.least_cover(part, known & part)
    return [(pods[each], [pods[other] for other in members(wanted_away[each] & ~going)]) for each in members(going)]


def _conflicts(clashes: Iterable[Clash], pods: Sequence[Pod]) -> tuple[list[int], list[int]]:
    """Return by pod, in their order, which others it wants to be apart from, and which want to be apart from it."""
    number = {pod: vertex for vertex, pod in enumerate(pods)}
    unwanted, wanted_away = [0] * len(pods), [0] * len(pods)
    for clash in clashes:
        declarers, others = (united(1 << number[pod] for pod in side) for side in clash)
        for vertex in members(declarers):
            unwanted[vertex] |= others
        for vertex in members(others):
            wanted_away[vertex] |= declarers
    named: defaultdict[str, int] = defaultdict(int)
    for vertex, pod in enumerate(pods):
        named[pod.name] |= 1 << vertex
    same = [~named[pod.name] for pod in pods]
    return list(map(and_, unwanted, same)), list(map(and_, wanted_away, same))


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
