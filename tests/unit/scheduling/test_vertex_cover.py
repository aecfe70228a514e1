"""Vertex covers: exact on small graphs, no worse than a known one on large ones, fast on those that clusters have."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rebalancer.scheduling.conflict_graph import Graph

Edges = set[tuple[int, int]]


def graph(size: int, edges: Edges, classes: int = 1) -> Graph:
    """Vertices whose weights grow with their number, by classes; no two sets of the same weight."""
    neighbours = [0] * size
    for one, other in edges:
        neighbours[one] |= 1 << other
        neighbours[other] |= 1 << one
    step = 1 << (size + 1)
    return Graph([step * (1 + vertex % classes) + (1 << vertex) for vertex in range(size)], neighbours)


def everything(size: int) -> int:
    return (1 << size) - 1


def cover(of: Graph, known: int | None = None) -> int:
    """The covers of all components together."""
    found = 0
    for part in of.components(everything(len(of.weights))):
        found |= of.least_cover(part, part if known is None else known & part)
    return found


def covers(found: int, edges: Edges) -> bool:
    return all(found >> one & 1 or found >> other & 1 for one, other in edges)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Edges]:
    size = draw(st.integers(2, 9))
    pairs = [(one, other) for one in range(size) for other in range(one)]
    return size, draw(st.sets(st.sampled_from(pairs)))


#: Its lightest cover takes all neighbours of a vertex and leaves no other vertex to decide about.
NOTHING_LEFT = (7, {(4, 0), (2, 1), (6, 5), (3, 1), (2, 0), (3, 0), (5, 3), (3, 2), (4, 1)})


@example(NOTHING_LEFT, 2)
@given(graphs(), st.integers(1, 4))
def test_the_cover_of_a_small_graph_is_the_lightest(drawn: tuple[int, Edges], classes: int) -> None:
    """All sets of vertices are tried."""
    size, edges = drawn
    of = graph(size, edges, classes)

    assert cover(of) == min((each for each in range(1 << size) if covers(each, edges)), key=of.weight)


@pytest.mark.parametrize("size", [41, 100, 401])
def test_the_cover_of_a_large_graph_is_one(size: int) -> None:
    """A path has no twins, and may be too large to search; some of its vertices stay all the same."""
    edges = {(vertex, vertex + 1) for vertex in range(size - 1)}
    found = cover(graph(size, edges))

    assert covers(found, edges)
    assert found != everything(size)


def test_a_known_cover_of_a_large_graph_is_not_made_worse() -> None:
    """Nothing is lighter than the least cover of a cycle, so that is the answer if it is given."""
    edges = {(vertex, (vertex + 1) % 100) for vertex in range(100)}
    known = sum(1 << each for each in range(0, 100, 2))

    assert cover(graph(100, edges), known) == known


def test_graphs_of_alike_vertices_are_solved_however_large() -> None:
    """Cliques, stars, and two groups that shun each other come down to a few vertices."""
    clique = {(one, other) for one in range(200) for other in range(one)}
    star = {(0, other) for other in range(1, 200)}
    groups = {(one, other) for one in range(60) for other in range(60, 200)}

    assert cover(graph(200, clique)) == everything(199)
    assert cover(graph(200, star)) == 1
    assert cover(graph(200, groups)) == everything(60)
