"""Where replacements land in any order: bounds from the emptiest state to the fullest, and what tied pods may do."""

from typing import Any

import pytest

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod, SpreadConstraint
from rebalancer.scheduling.any_order import AnyOrder
from rebalancer.scheduling.ranges import Extremes
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.answer import Answer
from tests import make

HOST = "kubernetes.io/hostname"
FIT, BALANCE, SPREAD = "NodeResourcesFit", "NodeResourcesBalancedAllocation", "PodTopologySpread"


def go(cluster: Cluster, pod: Pod, name: str) -> None:
    """Let a pod go, and its replacement be expected on a node."""
    node = cluster.node(name)
    assert node
    cluster.evicted(pod)
    cluster.place(pod, node)


def answer(**scores: dict[str, int]) -> Answer:
    """An answer with the scores of these nodes."""
    return Answer(tuple(scores), scores=lambda name: scores[name], feasible_nodes=lambda: tuple(scores))


def winners(emptiest: Answer, fullest: Answer, **swings: float) -> set[str]:
    return set(Extremes(emptiest, fullest, swings).winners())


def test_what_wins_in_the_middle_only_is_foreseen() -> None:
    """n2 is the emptiest, then n3, then n4; n1 is cordoned.  Two that go are expected on n2 and n3.

    The third lands on n2 as the first to arrive, and on n4 as the last; with only the first one there it lands on n3.
    """
    nodes = [make.node("n1", unschedulable=True), *(make.node(f"n{number}") for number in (2, 3, 4))]
    fill = {"n1": "200m", "n2": "500m", "n3": "700m", "n4": "900m"}
    crowd = [make.pod(f"f-{name}", node=name, cpu=cpu, memory="1Gi", owners=name) for name, cpu in fill.items()]
    going = [make.pod(f"p{number}", cpu="260m", memory="1Gi", owners=f"p{number}") for number in range(3)]
    cluster = make.cluster(nodes, [*crowd, *going])
    first = cluster.index(Simulation).ask(going[2]).nodes

    go(cluster, going[0], "n2")
    between = cluster.index(Simulation).ask(going[2]).nodes
    go(cluster, going[1], "n3")
    last = cluster.index(Simulation).ask(going[2]).nodes

    assert (first, between, last) == (("n2",), ("n3",), ("n4",))
    assert cluster.index(AnyOrder).ask(going[2]).nodes == ("n2", "n3", "n4")


def test_pods_that_have_landed_are_certain() -> None:
    """The same with the first two out of doubt: only what is left may happen."""
    nodes = [make.node("n1", cpu="1"), *(make.node(f"n{number}") for number in (2, 3))]
    pods = [make.pod(f"p{number}", cpu="300m", memory="1Gi", owners=f"p{number}") for number in range(2)]
    cluster = make.cluster(nodes, [*pods, make.pod("f", node="n3", cpu="100m", memory="300Mi", owners="f")])
    go(cluster, pods[0], "n2")
    any_order = cluster.index(AnyOrder)

    assert any_order.ask(pods[1]).nodes == ("n2", "n3")
    with any_order.among([pods[1]]):
        assert any_order.ask(pods[1]).nodes == ("n3",)
    assert any_order.ask(pods[1]).nodes == ("n2", "n3")


def test_pods_that_are_spread_together_are_tried() -> None:
    """n2 has more room, and wins with no replica there and with one on each node; with one on n2 alone, n3 wins."""
    spread = (SpreadConstraint(1, HOST, "ScheduleAnyway", make.selector(app="web")),)
    nodes = [make.node("n1", unschedulable=True), make.node("n2", cpu="8"), make.node("n3")]
    pods = [make.pod(f"p{number}", labels={"app": "web"}, spread=spread) for number in range(3)]
    cluster = make.cluster(nodes, [*pods, make.pod("f", node="n3", cpu="2", memory="8Gi", owners="f")])
    first = cluster.index(Simulation).ask(pods[2]).nodes
    go(cluster, pods[0], "n2")
    between = cluster.index(Simulation).ask(pods[2]).nodes
    go(cluster, pods[1], "n3")
    last = cluster.index(Simulation).ask(pods[2]).nodes

    assert (first, between, last) == (("n2",), ("n3",), ("n2",))
    assert cluster.index(AnyOrder).ask(pods[2]).nodes == ("n2", "n3")


def test_a_replica_that_lands_here_or_there_is_tried_on_each() -> None:
    """The replica may land on n2 or n3, and the next one lands where it did not."""
    spread = (SpreadConstraint(1, HOST, "ScheduleAnyway", make.selector(app="web")),)
    nodes = [make.node("n1", unschedulable=True), make.node("n2", cpu="8"), make.node("n3")]
    pods = [make.pod(f"p{number}", labels={"app": "web"}, spread=spread) for number in range(2)]
    cluster = make.cluster(nodes, pods)
    cluster.index(AnyOrder).may_land(pods[0], ("n2", "n3"))
    go(cluster, pods[0], "n3")

    assert cluster.index(Simulation).ask(pods[1]).nodes == ("n2",)
    assert cluster.index(AnyOrder).ask(pods[1]).nodes == ("n2", "n3")


def test_with_many_tied_pods_nothing_is_known() -> None:
    """It says so, and names no node."""
    pods = [make.pod(f"p{number}", labels={"app": "web"}) for number in range(6)]
    cluster = make.cluster([make.node("n1"), make.node("n2")], pods)
    for pod in pods[1:]:
        go(cluster, pod, "n2")

    found = cluster.index(AnyOrder).ask(pods[0])

    assert (found.nodes, found.known) == ((), False)
    assert found.reason.startswith("rules tie it to several others")


def test_a_node_wins_if_its_best_is_at_least_the_worst_of_all_others() -> None:
    """Scores of room go one way as nodes fill up."""
    emptiest = answer(a={FIT: 60}, b={FIT: 58}, c={FIT: 50})
    fullest = answer(a={FIT: 55}, b={FIT: 40}, c={FIT: 50})

    assert winners(emptiest, fullest) == {"a", "b"}


@pytest.mark.parametrize(("swing", "found"), [(0.0, {"a"}), (2.0, {"a", "b"})])
def test_balance_may_come_to_more_in_between(swing: float, found: set[str]) -> None:
    """By as many points as the shares of a node differ between the two states, and what is lost by rounding."""
    both = answer(a={FIT: 50, BALANCE: 78}, b={FIT: 50, BALANCE: 75})

    assert winners(both, both, b=swing) == found


@pytest.mark.parametrize(
    ("low", "found"),
    [
        pytest.param({"a": {SPREAD: 200}, "b": {SPREAD: 100}}, {"a"}, id="the best stays: scores go one way"),
        pytest.param({"b": {SPREAD: 200}}, {"a", "b", "c"}, id="the best may drop out: nothing is known"),
    ],
)
def test_scores_that_are_relative_to_other_nodes(low: dict[str, Any], found: set[str]) -> None:
    """They are bounded only while the nodes that may drop out do not set the scale."""
    emptiest = answer(a={SPREAD: 200}, b={SPREAD: 120}, c={SPREAD: 60})

    assert winners(emptiest, answer(**low)) == found
