"""Which moves waves find, in clusters small enough that the scheduler scores all nodes.

Nodes have a hundred points of cpu, targets are 50 %.  The least gain is 1.5 points.
"""

from datetime import timedelta

import pytest

from rebalancer.balancing.steering.waves import Waves
from tests.measured import cluster, node, planner, pod

ZONE = "topology.kubernetes.io/zone"
EMPTY = [f"empty-{number:02}" for number in range(20)]


def found(nodes, pods, usage):
    """The pods of the first wave, each with where it may land."""
    draft = Waves(planner(cluster(nodes, pods, usage), {"cpu": 20}, {"cpu": 50})).next_wave({})
    return {offer.candidate.pod.name: set(draft.shares[offer.candidate.pod]) for offer in draft.offers} if draft else {}


def test_empty_nodes_that_a_pod_may_not_use_leave_it_the_others():
    """Twenty empty nodes are tainted, and n2 at 30 % is not: `a` of 10 points goes there from n1 at 70 %."""
    nodes = [node("n1"), node("n2"), *(node(name, taints=["gpu:NoSchedule"]) for name in EMPTY)]
    pods = [pod("a"), pod("b", owners=None), pod("c", "n2", owners=None)]

    assert found(nodes, pods, {"a": 10, "b": 60, "c": 30}) == {"a": {"n2"}}


@pytest.mark.parametrize(("zone", "lands"), [("a", {"a": {"n2"}}), ("b", {})])
def test_empty_zones_leave_a_pod_that_has_to_stay_in_its_own_the_nodes_there(zone, lands):
    """Twenty empty nodes are in zone b, where `web` has one pod more; n2 at 30 % is in zone a, or in b too."""
    web = {"owners": "web", "labels": {"app": "web"}}
    zones = [{ZONE: "a"}, {ZONE: zone}, *({ZONE: "b"} for _ in EMPTY)]
    nodes = [node(name, labels=labels) for name, labels in zip(["n1", "n2", *EMPTY], zones, strict=True)]
    more = [pod(f"web-{number}", EMPTY[number], **web) for number in range(2)]
    pods = [pod("a", **web), pod("b", owners=None), pod("c", "n2", owners=None), *more]

    assert found(nodes, pods, {"a": 10, "b": 60, "c": 30, "web-0": 0, "web-1": 0}) == lands


def test_pods_that_can_go_nowhere_do_not_keep_those_behind_them():
    """By requests n2 takes `a` and `b` alone; a hundred pods would bring more than `a`, a hundred more than `b`."""
    crowd = [pod(f"{name}-{number}", cpu="9") for name in ("more-than-a", "more-than-b") for number in range(100)]
    a, b, there = pod("a"), pod("b"), pod("c", "n2", owners=None, cpu="2")
    usage = {each.name: 12 if "than-a" in each.name else 8 for each in crowd} | {"a": 10, "b": 4, "c": 10}
    on = cluster([node("n1"), node("n2")], [*crowd, a, b, there], usage)
    waves = Waves(planner(on, {"cpu": 20}, {"cpu": 50}))

    first = waves.next_wave({})
    on.evicted(a)
    second = waves.next_wave({})

    assert [[each.name for each in wave.pods] if wave else [] for wave in (first, second)] == [["a"], ["b"]]


WINDOW = timedelta(minutes=15)


@pytest.mark.parametrize(("window", "left"), [(timedelta(0), 20), (WINDOW, 50)])
def test_a_pod_that_goes_makes_room_only_where_the_figures_are_of_one_moment(window, left):
    """Over a window the peak of 50 points may have been made without the pod of 30."""
    a = pod("a", "n1")
    on = cluster([node("n1"), node("n2")], [a, pod("b", "n1")], {"a": 30, "b": 20}, measured={"window": window})
    fullness = planner(on, {"cpu": 20}, {"cpu": 50}).fullness

    with on.scope():
        on.remove(a)
        on.place(a, on.node("n2"))
        assert fullness.peak_fills(["n1", "n2"]).tolist() == [[left, 30]]
        assert fullness.fills(["n1", "n2"]).tolist() == [[20, 30]]
    assert fullness.peak_fills(["n1", "n2"]).tolist() == [[50, 0]]


def test_a_pod_that_is_tried_is_no_candidate_until_it_is_back() -> None:
    """Other pods tried meanwhile change nothing of it."""
    pods = [pod("a", "n1", owners="red"), pod("b", "n1", owners="blue")]
    on = cluster([node("n1"), node("n2")], pods, {"a": 30, "b": 30})
    pool = planner(on, {"cpu": 20}, {"cpu": 50}).pool

    def names() -> list[str]:
        return sorted(each.pod.name for each in pool.on(["n1"]))

    seen = [names()]
    for tried in pods:
        with on.scope():
            on.remove(tried)
            seen.append(names())
    assert [*seen, names()] == [["a", "b"], ["b"], ["a"], ["a", "b"]]
