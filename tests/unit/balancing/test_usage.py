"""Percentages, caps, means and room: the arithmetic of the utilization strategies (strategies.md 3.4 to 3.7)."""

import pytest

from rebalancer.balancing.figures import above_caps, underutilized
from rebalancer.balancing.relocation import Room
from rebalancer.balancing.usage import requested
from rebalancer.balancing.utilization import NodeUtilization, around_mean
from rebalancer.cluster.node import Node
from rebalancer.cluster.resources import METRIC_RESOURCE, parse_resources
from rebalancer.report.words import text as words_of
from tests.make import cluster, node, pod


def load(used, taints=(), **offered):
    """A node that offers and uses these quantities."""
    extra = {"cpu": "4", "memory": "16Gi", "pods": "110", **offered}
    return NodeUtilization(node("n1", taints=taints, extra=extra), parse_resources(used))


@pytest.mark.parametrize(
    ("used", "offered", "percent"),
    [
        ("100m", "1", 10.0),
        ("1", "3", 1000 / 3000 * 100),
        ("5", "4", 125.0),
        ("100m", "0", 0.0),
    ],
)
def test_a_percentage_is_a_share_of_what_the_node_offers(used, offered, percent):
    """Usage by capacity times a hundred, in this order; nothing of nothing is nothing."""
    assert load({"cpu": used}, cpu=offered).percent("cpu") == percent


def test_what_is_not_offered_or_not_used_has_no_percentage():
    """It counts as unused where thresholds ask for it."""
    some = load({"example.com/gpu": "2"})

    assert some.percent("example.com/gpu") is None
    assert some.percent("memory") is None
    assert some.within({"example.com/gpu": 0})
    assert not some.above({"example.com/gpu": 0}).points


def test_allocatable_counts_and_capacity_only_in_its_place():
    """A node that does not say what is allocatable offers its capacity."""
    both = Node(name="n1", capacity={"cpu": 4000}, allocatable={"cpu": 2000})
    only_capacity = Node(name="n1", capacity={"cpu": 4000})

    assert NodeUtilization(both, {"cpu": 1000}).percent("cpu") == 50
    assert NodeUtilization(only_capacity, {"cpu": 1000}).percent("cpu") == 25


@pytest.mark.parametrize(
    ("target", "capacity", "cap"),
    [(50, 9, 4), (100, 9, 9), (0, 9, 0), (29, 100, 29), (30, 100, 30), (33.3, 10, 3)],
)
def test_a_cap_is_cut_off_to_whole_units(target, capacity, cap):
    """But 0.29 * 100, a little less than 29 in floating point, is 29."""
    assert load({}, pods=str(capacity)).cap("pods", {"pods": target}) == cap


def test_caps_without_target_or_offer():
    """Without a target the whole capacity may be used; of what is not offered, nothing."""
    assert load({}).cap("pods", {}) == 110
    assert load({}).cap("example.com/gpu", {}) == 0
    assert load({}).cap("example.com/gpu", {"example.com/gpu": 50}) == 0
    assert load({}).cap(METRIC_RESOURCE, {METRIC_RESOURCE: 50}) == 50


@pytest.mark.parametrize(
    ("used", "targets", "text"),
    [
        ({"cpu": "2"}, {"cpu": 50}, ""),
        ({"cpu": "3", "memory": "1Gi"}, {"cpu": 50, "memory": 50}, "cpu 75 % > 50 %"),
        ({"cpu": "3", "memory": "12Gi"}, {"cpu": 50.5, "memory": 33}, "cpu 75 % > 50.5 %, memory 75 % > 33 %"),
        ({"cpu": "5", "pods": "3"}, {"pods": 50}, "cpu 125 % > 100 %"),
        ({"cpu": "2001m"}, {"cpu": 50}, "cpu 50.02 % > 50 %"),
        ({"example.com/gpu": "2"}, {}, "example.com/gpu 2 > 0"),
    ],
)
def test_excess_in_words(used, targets, text):
    """Everything above its cap, with as many decimals as it takes to see that."""
    found = above_caps(load(used), targets)

    assert (words_of(found) if found else "") == (text and f"n1 at {text}")


def test_slack_in_words():
    """Each threshold with the figure that is not above it."""
    some = load({"cpu": "1", "memory": "2Gi"})

    assert (
        words_of(underutilized(some, {"memory": 20, "cpu": 25, "pods": 1}))
        == "n1 at cpu 25 % <= 25 %, memory 12.5 % <= 20 %, pods 0 % <= 1 %"
    )


def test_total_adds_everything_up():
    """Millicores, bytes and counts, as the descheduler sorts nodes."""
    assert load({"cpu": "1730m", "memory": "3038982964", "pods": "25"}).total == 1730 + 3038982964 + 25


def test_means_leave_out_nodes_without_the_resource():
    """And a resource that no node offers has neither threshold nor target; both are kept between 0 and 100."""
    gpu = {"example.com/gpu": "10"}
    loads = [load({"cpu": "1", "example.com/gpu": "8"}, **gpu), load({"cpu": "3", "example.com/gpu": "0"})]
    low, high = around_mean(
        loads, {"cpu": 60, "example.com/gpu": 30, "none": 5}, {"cpu": 60, "example.com/gpu": 10, "none": 5}
    )

    assert low == {"cpu": 0, "example.com/gpu": 50}
    assert high == {"cpu": 100, "example.com/gpu": 90}


def test_requested_usage_counts_active_pods_and_what_the_thresholds_name():
    """Terminating pods count, completed ones do not; untracked resources are left out."""
    gpu = {"requests": {"example.com/gpu": "2"}}
    pods = [pod("a", cpu="300m", memory="1Gi", **gpu), pod("b", terminating=True), pod("c", phase="Succeeded")]
    on = cluster([node("n1"), node("n2")], pods)

    usage = requested(on, ["cpu", "example.com/gpu"])
    assert usage.nodes["n1"] == {"cpu": 400, "memory": 1 << 30, "pods": 2, "example.com/gpu": 2}
    assert usage.nodes["n2"] == {"cpu": 0, "memory": 0, "pods": 0, "example.com/gpu": 0}
    assert set(requested(on, ["cpu"]).nodes["n1"]) == {"cpu", "memory", "pods"}
    assert usage.of_pod(pods[0]) == {"cpu": 300, "memory": 1 << 30, "pods": 1, "example.com/gpu": 2}
    assert [each.node.name for each in usage.destinations(on)] == ["n1", "n2"]


def test_what_a_node_uses_falls_as_pods_go():
    """Only tracked resources do."""
    some = load({"cpu": "3", "pods": "2"})
    some.charge({"cpu": 1000, "pods": 1, "memory": 5}, -1)

    assert some.used == {"cpu": 2000, "pods": 1}


def test_room_adds_up_and_overfull_nodes_take_from_it():
    """2000m free on one node and 1000m too much on the other leave 1000m, which two pods use up."""
    room = Room([load({"cpu": "2"}), load({"cpu": "5"})], {})

    assert not room.spent
    room.take({"cpu": 999})
    assert not room.spent
    room.take({"cpu": 1})
    assert room.spent


def test_some_destination_must_be_tolerated_as_a_whole():
    """Tolerating half of the taints here and half there is not enough."""
    room = Room([load({}, taints=["a:NoSchedule"]), load({}, taints=["b:NoExecute", "c:PreferNoSchedule"])], {})

    assert room.tolerated_by(pod("p", tolerations=["a"]))
    assert room.tolerated_by(pod("p", tolerations=["b", "c"]))
    assert not room.tolerated_by(pod("p", tolerations=["b"]))
    assert not room.tolerated_by(pod("p", tolerations=["b", "x"]))
    assert not room.tolerated_by(pod("p"))
