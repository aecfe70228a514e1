"""Possible histories: drawn by pod, node and number alone, and followed as pods go."""

from typing import Any

import pytest

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.worlds import SAMPLES, Worlds, drawn
from tests import make


def scene(count: int = 3, nodes: int = 3, **snapshot: Any) -> tuple[Cluster, list[Pod]]:
    """Pods of a core on n1, which is full; the other nodes are empty and equal."""
    pods = [make.pod(f"p{number}", node="n1", cpu="1", owners=f"o{number}") for number in range(count)]
    names = [f"n{number}" for number in range(1, nodes + 1)]
    return make.cluster([make.node(name, cpu="4", memory="8Gi") for name in names], pods, **snapshot), pods


def look(cluster: Cluster, pod: Pod) -> dict[str, float]:
    worlds = cluster.index(Worlds)
    list(worlds.placements(pod))
    return worlds.shares(pod)


def goes(cluster: Cluster, pod: Pod) -> dict[str, float]:
    """Let a pod go; the plan counts on the node where it lands most often."""
    shares = look(cluster, pod)
    node = cluster.node(next(iter(shares)))
    assert node
    cluster.place(pod, node)
    cluster.evicted(pod)
    return shares


def test_of_equal_nodes_each_may_be_taken_and_no_place_of_the_list_is_known_to_be_first() -> None:
    """In half of the worlds each has half a chance, in the others the first that is come to from some place wins.

    From n1 and n2, which is the start in six of these eight, that is n2.
    """
    cluster, pods = scene()

    assert look(cluster, pods[0]) == {"n2": 0.625, "n3": 0.375}


def test_of_many_equal_nodes_none_is_told_to_be_likely() -> None:
    cluster, pods = scene(nodes=20)

    shares = look(cluster, pods[0])

    assert len(shares) == 19
    assert max(shares.values()) < 0.1


def test_a_later_pod_lands_beside_the_one_before_in_no_world() -> None:
    """Wherever the first one is, the other node has more room for the second."""
    cluster, pods = scene()
    worlds = cluster.index(Worlds)
    goes(cluster, pods[0])
    first = {each.number: each.node for each in worlds._seen[pods[0]]}

    second = {each.number: each.node for each in worlds.placements(pods[1])}

    assert set(second.values()) == {"n2", "n3"}
    assert all(first[number] != second[number] for number in range(SAMPLES))


def test_what_is_drawn_hangs_on_the_pod_alone() -> None:
    """More pods elsewhere change nothing; the same cluster gives the same."""
    pod = make.pod("p0", uid="one")
    assert drawn(pod, "n2", 3) == drawn(make.pod("other", uid="one"), "n2", 3) != drawn(pod, "n2", 4)
    cluster, pods = scene()
    larger, more = scene(6)

    assert [list(look(each, p[1])) for each, p in ((cluster, pods), (larger, more))] == [["n2", "n3"]] * 2


def test_what_is_taken_back_leaves_no_trace() -> None:
    """A scope that ends undoes it in each world."""
    cluster, pods = scene()
    worlds = cluster.index(Worlds)
    goes(cluster, pods[0])
    before = [(each.node, each.answer.nodes) for each in worlds.placements(pods[1])]
    node = cluster.node("n2")
    assert node
    with cluster.scope():
        look(cluster, pods[2])
        cluster.remove(pods[2])
        cluster.place(pods[2], node)

    assert [(each.node, each.answer.nodes) for each in worlds.placements(pods[1])] == before


@pytest.mark.parametrize("nodes", [3, 150])
def test_other_orders_are_played_in_half_of_the_worlds(nodes: int) -> None:
    """Shares still sum up to one; one that goes alone has no other order."""
    cluster, pods = scene(nodes=nodes)
    worlds = cluster.index(Worlds)
    with cluster.scope():
        for pod in pods[:2]:
            goes(cluster, pod)

    assert not list(worlds.in_drawn_orders({pods[0]: "n2"}))
    assert [len(each) for each in worlds.in_drawn_orders({pods[0]: "n2", pods[1]: "n3"})] == [2] * (SAMPLES // 2)
    assert [round(sum(worlds.shares(pod).values()), 6) for pod in pods[:2]] == [1, 1]


@pytest.mark.parametrize("drawn_by", range(8))
def test_where_old_pods_end_together_the_early_ones_meet_all_of_them_and_the_late_ones_none(drawn_by: int) -> None:
    """n1 is full while both still end, so the ReplicaSet's goes to n2; once both are gone, n1 is the emptier one."""
    owner = (make.owner("s", kind="StatefulSet"),)
    late = make.pod("late", uid=f"late-{drawn_by}", node="n1", cpu="1", owners=owner)
    early = make.pod("early", uid=f"early-{drawn_by}", node="n1", cpu="1", owners="r")
    nodes = [make.node("n1", cpu="2", memory="8Gi"), make.node("n2", cpu="3", memory="8Gi")]
    cluster = make.cluster(nodes, [late, early])
    worlds = cluster.index(Worlds)
    with cluster.scope():
        for pod in (late, early):
            goes(cluster, pod)

    orders = list(worlds.in_drawn_orders({late: "n1", early: "n2"}))

    assert len(orders) == SAMPLES // 2
    together = [[(pod.name, seen.node) for pod, seen in order] for order in orders[SAMPLES // 4 :]]
    assert together == [[("early", "n2"), ("late", "n1")]] * (SAMPLES // 4)


def test_windows_cover_the_whole_list() -> None:
    """Of 150 nodes 100 are scored: the last 15, which are best, win only where the window has one of them."""
    nodes = [make.node(f"n{number:03}", cpu="4" if number < 135 else "8", memory="8Gi") for number in range(150)]
    pod = make.pod("p", node="n000", cpu="1")
    cluster = make.cluster(nodes, [pod])

    shares = look(cluster, pod)
    best = sum(share for name, share in shares.items() if name >= "n135")

    assert best == pytest.approx(1 - 35 / 150, abs=0.1)


def test_a_pod_that_stands_in_for_its_replacement_may_be_expected_on_its_own_node() -> None:
    """Nobody knows what comes in the place of a pod without an owner."""
    single, other = make.pod("a", "n1", owners=None), make.pod("b", "n1")
    on = Cluster(make.snapshot([make.node("n1"), make.node("n2")], [single, other]))
    with on.scope():
        on.remove(single)
        on.place(single, on.node("n1"))
        look(on, other)

    assert look(on, other) == {"n2": 1.0}
