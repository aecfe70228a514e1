"""Which nodes may win where the scheduler scores a part of them: the fast way against the definition."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from rebalancer.cluster.pod import PreferredTerm
from rebalancer.cluster.selectors import NodeSelectorTerm, Requirement
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.plugin import ByNode, Nodes, scaled
from rebalancer.scheduling.simulator.sampling import circle_from, fewest_in_windows, orders, window_winners
from tests import make

FEW = st.integers(0, 4)


# Without node 0, node 2 wins by 110 to 90 of node 1; by the scores among all, node 1 would win by 65 to 60.
@example([(2, 4), (4, 1), (1, 2), (1, 0), (0, 2)], range(12), 4)
@given(st.lists(st.tuples(FEW, FEW), min_size=2, max_size=12), st.permutations(range(12)), st.integers(1, 12))
def test_a_node_wins_in_some_window_or_in_none(nodes: list[tuple[int, int]], order: Sequence[int], enough: int) -> None:
    """A window is contiguous, and starts anywhere; in one column the highest of those that are scored becomes 100."""
    plain, raw = np.array(nodes).T
    count, enough = len(nodes), min(enough, len(nodes))
    circle = np.array([place for place in order if place < count])

    def weigh(scored: Nodes) -> list[ByNode]:
        return [10 * scored.of(plain), scaled(scored.of(raw))]

    found = set()
    for start in range(count):
        window = Nodes(sorted(circle_from(circle, start / count, Nodes(range(count)))[:enough]))
        scores = sum(weigh(window))
        found |= {place for place, score in zip(window, scores, strict=True) if score == max(scores)}

    assert window_winners(circle, enough, weigh) == found


@given(st.permutations(range(12)), st.sets(st.integers(0, 11)), st.integers(1, 14))
def test_the_window_with_the_fewest_of_some_nodes_is_known(order: Sequence[int], some: set[int], enough: int) -> None:
    windows = [{*(*order, *order)[start : start + enough]} for start in range(12)]

    assert fewest_in_windows(np.array(order), Nodes(sorted(some)), enough) == min(len(each & some) for each in windows)


def test_where_scores_differ_in_each_window_some_are_looked_at_together() -> None:
    """Otherwise a cluster whose nodes differ would cost a look at each of its windows."""
    looks = Counter[int]()

    def weigh(scored: Nodes) -> list[ByNode]:
        looks[len(scored)] += 1
        return [scored.indexes % 7 + len(scored)]

    assert window_winners(np.arange(2000), 400, weigh) >= {place for place in range(2000) if place % 7 == 6}
    assert looks.total() < 250


def test_a_node_is_judged_by_what_it_scores_among_those_that_are_looked_at() -> None:
    """Of 130 nodes 100 are scored.  Gold is worth 200 points, and silver 80, but 200 where no gold is looked at.

    So n060 wins without gold, though it is full and scores 90 points less than an empty node.
    """
    tiers = {0: "gold", 60: "silver"}
    labels = [{"tier": tiers[each]} if each in tiers else {} for each in range(130)]
    nodes = [make.node(f"n{each:03}", cpu="10", memory="10Gi", labels=mine) for each, mine in enumerate(labels)]
    hog = make.pod("hog", "n060", cpu="9", memory="9Gi")
    wishes = tuple(
        PreferredTerm(weight, NodeSelectorTerm((Requirement("tier", "In", (tier,)),)))
        for weight, tier in ((100, "gold"), (40, "silver"))
    )
    web = make.pod("web", "n001", cpu="100m", memory="100Mi", preferred=wishes)

    assert make.cluster(nodes, [hog, web]).index(Simulation).ask(web).nodes == ("n000", "n060")


def test_a_pod_that_is_gone_by_then_makes_its_own_node_as_good_as_others() -> None:
    """Its replacement has its name, so its controller waits until it has ended."""
    nodes = [make.node(f"n{each:03}", cpu="10") for each in range(130)]
    db = make.pod("db-0", "n001", cpu="5", owners=[make.owner("db", "StatefulSet")])

    assert "n001" in make.cluster(nodes, [db]).index(Simulation).ask(db).nodes


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
