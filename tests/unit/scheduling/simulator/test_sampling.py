"""Which nodes may win where the scheduler scores a part of them: the fast way against the definition."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.sampling import orders, window_of, window_winners
from rebalancer.scheduling.simulator.simulator import Weighted, totals
from tests import make

SCORES = st.integers(0, 100)


@given(st.data(), st.integers(2, 12))
def test_a_node_wins_in_some_window_or_in_none(data, count: int) -> None:
    """A window is contiguous, and starts anywhere; in one column the highest of those that are scored becomes 100."""
    column = st.lists(st.integers(0, 4), min_size=count, max_size=count)
    plain, raw = data.draw(column), data.draw(column)
    circle = data.draw(st.permutations(range(count)))
    enough = data.draw(st.integers(1, count))

    def weigh(scored: Sequence[int]) -> list[list[int]]:
        most = max(raw[place] for place in scored) or 1
        return [[10 * plain[place] for place in scored], [100 * raw[place] // most for place in scored]]

    found = set()
    for start in range(count):
        window = window_of(circle, start / count, range(count), enough)
        scores = dict(zip(window, map(sum, zip(*weigh(window), strict=True)), strict=True))
        found |= {place for place in window if scores[place] == max(scores.values())}

    assert window_winners(circle, enough, weigh) == found


def test_where_scores_differ_in_each_window_some_are_looked_at_together() -> None:
    """Otherwise a cluster whose nodes differ would cost a look at each of its windows."""
    looks = Counter[int]()

    def weigh(scored: Sequence[int]) -> list[list[int]]:
        looks[len(scored)] += 1
        return [[place % 7 + len(scored) for place in scored]]

    assert window_winners(range(2000), 400, weigh) >= {place for place in range(2000) if place % 7 == 6}
    assert looks.total() < 250


@example([8, 8, 8, 0, *[1] * 126])
@given(st.lists(st.integers(0, 8), min_size=101, max_size=130))
def test_the_winners_of_all_windows_are_known_with_the_best_of_all_nodes(used: list[int]) -> None:
    """From 101 nodes on a part is scored."""
    nodes = [make.node(f"n{number:03d}", cpu="10") for number in range(len(used))]
    pods = [make.pod(f"p{number}", node=f"n{number:03d}", cpu=str(cpu)) for number, cpu in enumerate(used) if cpu]
    web = make.pod("web", node="n000", cpu="100m")
    simulation = make.cluster(nodes, [*pods, web]).index(Simulation)

    best, anywhere = simulation.in_turn(web)

    assert best.sampled
    assert set(best.nodes) <= set(anywhere.nodes)
    assert anywhere == simulation.ask(web).without_scores()


def test_the_scheduler_takes_zones_in_turn() -> None:
    """By arrival, or after a restart by name."""
    zones = {"a": "z1", "b": "z1", "c": "z2", "d": "z2", "e": "z1"}
    nodes = [
        make.node(name, labels={"topology.kubernetes.io/zone": zone}, created=make.NOW - timedelta(days=age))
        for age, (name, zone) in enumerate(zones.items())
    ]
    named = [["".join(nodes[each].name for each in order)] for order in orders(nodes)]

    assert named == [["edbca"], ["acbde"]]


@given(st.lists(st.tuples(st.lists(SCORES, min_size=3, max_size=3), st.integers(1, 4)), max_size=4))
def test_totals_are_the_weighted_sums_less_a_constant(columns: list[tuple[list[int], int]]) -> None:
    """Columns that are the same for all nodes are left out."""
    sums = [sum(weight * scores[place] for scores, weight in columns) for place in range(3)]

    found = totals([Weighted(*each) for each in columns], 3)

    assert [total - found[0] for total in found] == [total - sums[0] for total in sums]
