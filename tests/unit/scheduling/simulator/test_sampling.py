"""Which nodes may win where the scheduler scores a part of them: the fast way against the definition."""

from datetime import timedelta

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.sampling import orders, winners_in_line
from tests import make


@given(st.lists(st.integers(0, 4), min_size=2, max_size=12), st.data())
def test_a_node_wins_in_some_window_or_in_none(totals: list[int], data: st.DataObject) -> None:
    """A window is contiguous, and starts anywhere."""
    enough, count = data.draw(st.integers(1, len(totals))), len(totals)
    line = np.array([*range(count), *range(enough - 1)])

    found = set()
    for start in range(count):
        window = line[start : start + enough].tolist()
        found |= {place for place in window if totals[place] == max(totals[each] for each in window)}

    assert winners_in_line(line, np.array(totals)[line], enough) == found


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
