"""Which nodes may win where the scheduler scores a part of them: the fast way against the definition."""

from collections.abc import Sequence
from datetime import timedelta

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.plugin import Nodes
from rebalancer.scheduling.simulator.sampling import Parts, fewest_in_windows, orders
from tests import make

FEW = st.integers(0, 4)


@given(st.lists(FEW, min_size=2, max_size=12), st.permutations(range(12)), st.integers(1, 12))
def test_a_node_wins_in_some_window_or_in_none(scores: list[int], order: Sequence[int], enough: int) -> None:
    """A window is contiguous, and starts anywhere; equal nodes win together."""
    count, enough = len(scores), min(enough, len(scores))
    circle = [place for place in order if place < count]
    windows = [[*circle, *circle][start : start + enough] for start in range(count)]
    best = {place for window in windows for place in window if scores[place] == max(scores[each] for each in window)}

    assert Parts([np.array(circle)], Nodes(range(count)), enough, np.array(scores)).winners() == best


@given(st.permutations(range(12)), st.sets(st.integers(0, 11)), st.integers(1, 14))
def test_the_window_with_the_fewest_of_some_nodes_is_known(order: Sequence[int], some: set[int], enough: int) -> None:
    windows = [{*(*order, *order)[start : start + enough]} for start in range(12)]

    assert fewest_in_windows(np.array(order), Nodes(sorted(some)), enough) == min(len(each & some) for each in windows)


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
