"""Where replacements land after ties, by example."""

import pytest

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.after_ties import AfterTies
from rebalancer.scheduling.simulation import Simulation
from tests import make

PACKS = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}]}
    ],
}


def empty_nodes(number: int, pods: int, owner: str = "", **fields: object) -> tuple[Cluster, list[Pod]]:
    """Equal empty nodes, and one full of pods that each have an owner of their own, unless one is given."""
    nodes = [make.node("full", unschedulable=True), *(make.node(f"n{index}") for index in range(number))]
    owners = {f"p{index}": owner or f"p{index}" for index in range(pods)}
    size = {"node": "full", "cpu": "500m", "memory": "2Gi"}
    going = [make.pod(name, owners=of, labels={"app": of}, **size) for name, of in owners.items()]
    return make.cluster(nodes, going, **fields), going


def go(cluster: Cluster, pod: Pod, name: str) -> None:
    node = cluster.node(name)
    assert node
    cluster.place(pod, node)
    cluster.evicted(pod)


def test_where_pods_are_packed_the_next_one_is_beside_the_first_wherever_that_is() -> None:
    """The plan expects both on n0; the scheduler may have taken any of three."""
    cluster, (first, second, *_) = empty_nodes(3, 3, scheduler_configuration=PACKS)
    after_ties = cluster.index(AfterTies)
    assert after_ties.may_land(first) == ("n0", "n1", "n2")
    go(cluster, first, "n0")

    assert cluster.index(Simulation).ask(second).nodes == ("n0",)
    assert after_ties.may_land(second) == ("n0", "n1", "n2")


def test_where_pods_are_spread_the_next_one_may_be_on_any_too() -> None:
    """To the plan n0 is out of the question; it is not if the first one is elsewhere."""
    cluster, (first, second, *_) = empty_nodes(3, 3)
    after_ties = cluster.index(AfterTies)
    after_ties.may_land(first)
    go(cluster, first, "n0")

    assert cluster.index(Simulation).ask(second).nodes == ("n1", "n2")
    assert after_ties.may_land(second) == ("n0", "n1", "n2")


def test_without_a_tie_nothing_is_wider() -> None:
    """A single empty node takes the first one; the second is foreseen as ever."""
    cluster, (first, second, *_) = empty_nodes(1, 3)
    after_ties = cluster.index(AfterTies)
    assert after_ties.may_land(first) == ("n0",)
    go(cluster, first, "n0")

    assert after_ties.may_land(second) == cluster.index(Simulation).ask(second).nodes == ("n0",)


@pytest.mark.parametrize(("number", "rough"), [(16, False), (17, True)])
def test_where_too_much_is_possible_the_answer_is_rough(number: int, rough: bool) -> None:
    """The first of an owner's pods may be on so many nodes, and the next one is spread with it."""
    cluster, (first, second, *_) = empty_nodes(number, 2, owner="web")
    after_ties = cluster.index(AfterTies)
    with cluster.scope():
        after_ties.may_land(first)
        go(cluster, first, "n0")
        after_ties.may_land(second)
        assert after_ties.is_rough(second) is rough

    after_ties.may_land(second)
    assert not after_ties.is_rough(second)


def test_who_may_be_elsewhere_is_told() -> None:
    """The first one is expected on n0, and may be on n1."""
    cluster, (first, *_) = empty_nodes(2, 3)
    after_ties = cluster.index(AfterTies)
    after_ties.may_land(first)
    go(cluster, first, "n0")

    uncertain = {node.name: list(after_ties.uncertain_on(node)) for node in cluster.nodes}
    assert uncertain == {"full": [], "n0": [first], "n1": []}


def test_an_answer_is_worked_out_once_until_something_changes() -> None:
    """A pod may be asked about again and again before it goes."""
    cluster, (first, second, third) = empty_nodes(3, 3)
    after_ties = cluster.index(AfterTies)
    after_ties.may_land(first)
    go(cluster, first, "n0")

    assert after_ties.may_land(second) is after_ties.may_land(second)
    before = after_ties.may_land(second)
    after_ties.may_land(third)
    go(cluster, third, "n1")
    assert after_ties.may_land(second) is not before


def test_a_tie_that_was_taken_back_widens_nothing() -> None:
    """The eviction was refused."""
    cluster, (first, second, third) = empty_nodes(3, 3)
    after_ties = cluster.index(AfterTies)
    with cluster.scope():
        after_ties.may_land(first)
        cluster.place(first, cluster.nodes[1])
        cluster.remove(first)
        assert after_ties.may_land(second) == ("n0", "n1", "n2")
    go(cluster, third, "n0")

    assert after_ties.may_land(second) == cluster.index(Simulation).ask(second).nodes == ("n1", "n2")
