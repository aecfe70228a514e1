"""Where replacements land in any order: bounds from the emptiest state to the fullest, and what tied pods may do."""

from typing import Any

import pytest

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.placement import Placement, PodAffinityTerm, WeightedPodTerm
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


def scored_by(plugin: str, **args: Any) -> dict[str, Any]:
    """A scheduler that scores by one plugin alone."""
    score = {"disabled": [{"name": "*"}], "enabled": [{"name": plugin}]}
    profile = {"plugins": {"score": score}, "pluginConfig": [{"name": plugin, "args": args}]}
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return {"scheduler_configuration": {**head, "profiles": [profile]}}


def foreseen_step_by_step(cluster: Cluster, first: Pod, second: Pod, last: Pod) -> list[tuple[str, ...]]:
    """Where the last one lands before the others come, after the first, and after both, which land on n2."""
    found = [cluster.index(Simulation).ask(last).nodes]
    for pod in (first, second):
        go(cluster, pod, "n2")
        found.append(cluster.index(Simulation).ask(last).nodes)
    return found


def test_shares_that_even_out_again_are_foreseen() -> None:
    """n2 is even at first, and again when both others are there: one takes 40 % of its cpu, the other of its memory.

    With the one alone 50 % and 10 % are taken, which scores 80; n3 with its 30 % and 10 % scores 90.
    """
    nodes = [make.node(f"n{number}", memory="10Gi", kubelet_version="v1.35.0") for number in (1, 2, 3)]
    nodes[0] = make.node("n1", unschedulable=True, kubelet_version="v1.35.0")
    going = [
        make.pod("cpu", cpu="1600m", owners="cpu"),
        make.pod("memory", cpu=None, memory="4Gi", owners="memory"),
        make.pod("p", cpu="400m", memory="1Gi", owners="p"),
    ]
    crowd = [make.pod("f", node="n3", cpu="800m", owners="f")]
    cluster = make.cluster(nodes, [*going, *crowd], **scored_by(BALANCE))

    assert foreseen_step_by_step(cluster, *going) == [("n2",), ("n3",), ("n2",)]
    assert cluster.index(AnyOrder).ask(going[2]).nodes == ("n2", "n3")


def test_a_shape_that_rises_and_falls_is_foreseen() -> None:
    """Best at half full.  n2 would be 20, 50 or 80 % full with the pod and score 46, 100 or 46; n3 has 73 at 35 %."""
    shape = [{"utilization": at, "score": score} for at, score in ((0, 1), (50, 10), (100, 1))]
    strategy = {"type": "RequestedToCapacityRatio", "resources": [{"name": "cpu", "weight": 1}]}
    fit = scored_by(FIT, scoringStrategy={**strategy, "requestedToCapacityRatio": {"shape": shape}})
    nodes = [make.node("n1", unschedulable=True), make.node("n2", cpu="1"), make.node("n3", cpu="1")]
    going = [make.pod(name, cpu=cpu, owners=name) for name, cpu in (("a", "300m"), ("b", "300m"), ("p", "200m"))]
    cluster = make.cluster(nodes, [*going, make.pod("f", node="n3", cpu="150m", owners="f")], **fit)

    assert foreseen_step_by_step(cluster, *going) == [("n3",), ("n2",), ("n3",)]
    assert cluster.index(AnyOrder).ask(going[2]).nodes == ("n2", "n3")


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


def test_a_replica_that_must_be_apart_is_in_one_place_at_a_time() -> None:
    """It may land on n2 or n3, and leaves the other one free, so the next one lands in any case."""
    apart = (PodAffinityTerm(HOST, make.selector(app="web")),)
    nodes = [make.node("n1", unschedulable=True), make.node("n2"), make.node("n3")]
    pods = [make.pod(f"p{number}", labels={"app": "web"}, anti_affinity=apart) for number in range(2)]
    cluster = make.cluster(nodes, pods)
    cluster.index(AnyOrder).may_land(pods[0], ("n2", "n3"))
    go(cluster, pods[0], "n3")

    assert cluster.index(AnyOrder).ask(pods[1]).nodes == ("n2", "n3")


def test_what_a_pod_prefers_is_there_or_not_yet() -> None:
    """Near the cache on n2 once that has come, near the two logs on n4 before; never near the one log on n3."""
    wishes = tuple(
        WeightedPodTerm(weight, PodAffinityTerm(HOST, make.selector(app=app)))
        for weight, app in ((100, "cache"), (2, "log"))
    )
    nodes = [make.node("n1", unschedulable=True), *(make.node(f"n{number}") for number in (2, 3, 4))]
    logs = [
        make.pod(f"l{name}{number}", node=name, labels={"app": "log"})
        for name, number in (("n3", 1), ("n4", 1), ("n4", 2))
    ]
    cache = make.pod("cache", labels={"app": "cache"}, owners="cache")
    pod = make.pod("p", owners="p", placement=Placement(preferred_affinity=wishes))
    cluster = make.cluster(nodes, [*logs, cache, pod], namespaces={}, **scored_by("InterPodAffinity"))
    go(cluster, cache, "n2")

    assert cluster.index(AnyOrder).ask(pod).nodes == ("n2", "n4")


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


@pytest.mark.parametrize(
    ("weight", "touched", "found"),
    [(0, "a", {"a"}), (1, "a", {"a", "b"}), (1, "b", {"a", "b"}), (1, "c", {"a", "c"})],
)
def test_scores_that_rise_and_fall_may_come_to_anything_in_between(weight: int, touched: str, found: set[str]) -> None:
    """On nodes where pods come or go: then a may come to nothing, and b or c to 100."""
    one = answer(a={FIT: 100}, b={FIT: 60}, c={FIT: 20})
    other = answer(a={FIT: 90}, b={FIT: 50}, c={FIT: 20})

    assert set(Extremes(one, other, {touched: 0.0}, wavering=weight).winners()) == found


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
