"""Columns over nodes: amounts beyond 64 bits, and which of several reasons is told."""

import numpy as np

from rebalancer.cluster.pod import SpreadConstraint
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.plugin import Refusals
from tests import make


def test_amounts_beyond_64_bits_stop_nobody() -> None:
    """A pod may ask for 100Ei, which is more than 2^63 bytes: n1 is full then, and n2 takes others."""
    nodes = [make.node("n1", memory="100Ei"), make.node("n2")]
    hogs = [make.pod(f"hog{number}", "n1", memory="100Ei") for number in range(3)]
    web = make.pod("web", "n2", memory="1Gi")
    simulation = make.cluster(nodes, [*hogs, web]).index(Simulation)

    assert simulation.ask(web).nodes == ("n2",)
    assert "Insufficient memory" in simulation.ask(hogs[0]).reason


def test_the_first_reason_for_which_a_node_is_refused_is_told() -> None:
    """Of three nodes one is refused for both reasons, one for the second, and one for none."""
    found = Refusals.joined([(np.array([True, False, False]), ("one",)), (np.array([True, True, False]), ("two",))])

    assert found is not None
    assert found.gone.tolist() == [True, True, False]
    assert [found.why(index) for index in (0, 1)] == [("one",), ("two",)]


def test_sums_of_soft_spread_are_rounded() -> None:
    """Three, two and one pods: 4.83, 3.22 and 1.61 make 5, 3 and 2, and these 40, 80 and 100, with a weight of 2."""
    zones = {"n1": 3, "n2": 2, "n3": 1}
    nodes = [make.node(name, labels={"zone": name}) for name in zones]
    there = [
        make.pod(f"{at}-{each}", at, labels={"app": "web"}) for at, count in zones.items() for each in range(count)
    ]
    spread = (SpreadConstraint(1, "zone", "ScheduleAnyway", make.selector(app="web")),)
    new = make.pod("new", "gone", labels={"app": "web"}, spread=spread)

    answer = make.cluster(nodes, [*there, new]).index(Simulation).ask(new)

    assert [answer.scores(name)["PodTopologySpread"] for name in zones] == [80, 160, 200]
