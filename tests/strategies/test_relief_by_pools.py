"""Pools: nodes of one value of a label have a mean of their own, and pods stay among them unless told otherwise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.balancing.utilization import NodeUtilization
from rebalancer.eviction.steering import Steer
from rebalancer.report.words import text
from tests.make import decide, evicted, refused
from tests.measured import RELIEF, cluster, low, node, pod, points

TYPE = "node.kubernetes.io/instance-type"
POOLS = {"label": TYPE}
ACROSS = {**POOLS, "moves": "across"}


def of_type(name, kind):
    return node(name, labels={TYPE: kind})


def busy_and_idle_pools():
    """Two large nodes use 80 and 40 %, two small ones 30 and 10 %; pods of ten points."""
    nodes = (of_type("l1", "large"), of_type("l2", "large"), of_type("s1", "small"), of_type("s2", "small"))
    on = {"l1": 8, "l2": 4, "s1": 3, "s2": 1}
    pods = [pod(f"{name}-{each}", on=name) for name, count in on.items() for each in range(count)]
    return cluster(nodes, pods, {each.name: 10 for each in pods})


def placements(ledger):
    return {(each.pod.node, each.destination.nodes[0]) for each in ledger.evictions}


def by_deviation(distance, pools=None, scheduler="default"):
    metrics = {**RELIEF, "scheduler": scheduler, **({"pools": pools} if pools else {})}
    return low(distance, distance, useDeviationThresholds=True, metricsUtilization=metrics)


@pytest.mark.parametrize("steer", [None, Steer(1.5, ("a", "b"))])
def test_pods_stay_in_their_pool(steer):
    """The mean of all nodes is 40 %, of the large ones 60 %, of the small ones 20 %: each pool is evened out."""
    scheduler = "default" if steer else "unknown"
    mixed = decide(busy_and_idle_pools(), by_deviation(8, None, scheduler), steer=steer)
    apart = decide(busy_and_idle_pools(), by_deviation(8, POOLS, scheduler), steer=steer)

    assert {source for source, _ in placements(mixed)} == {"l1"}
    assert placements(apart) == {("l1", "l2"), ("s1", "s2")}


@pytest.mark.parametrize("steer", [None, Steer(1.5, ("a", "b"))])
def test_across_pools_each_node_has_the_band_of_its_own(steer):
    """The large ones may use 52 to 68 %, the small ones 12 to 28 %; the report names the band of the node."""
    ledger = decide(busy_and_idle_pools(), by_deviation(8, ACROSS, "default" if steer else "unknown"), steer=steer)

    assert {text(each.because).split(":")[0] for each in ledger.evictions} >= {
        "l1 at cpu 80 % > 68 %",
        "s1 at cpu 30 % > 28 %",
    }


def test_a_pod_that_would_land_in_another_pool_stays():
    """The scheduler would take the empty node of the other pool, whatever is wanted."""
    nodes = (of_type("l1", "large"), of_type("l2", "large"), of_type("s1", "small"))
    pods = [pod(f"a{each}", on="l1") for each in range(6)] + [pod("b", on="l2", cpu="2")]
    ledger = decide(cluster(nodes, pods, {each.name: 10 for each in pods}), low(metricsUtilization=with_pools(POOLS)))

    assert evicted(ledger) == []
    assert set(refused(ledger).values()) == {"NoDestination"}
    assert "s1, which is of another pool" in text(ledger.refusals[0].verdict.cause)


def test_steering_goes_on_where_the_usage_of_a_node_is_unknown():
    """A node without a fresh sample gives and receives nothing; the others are steered all the same."""
    pods = [pod(f"p{each}") for each in range(8)]
    usage = {each.name: 10 for each in pods}
    nodes = {"n1": points(80), "n2": points(0)}
    on = cluster((node("n1"), node("n2"), node("n3")), pods, usage, measured={"nodes": nodes})
    ledger = decide(on, low(), steer=Steer(1.5, ("a", "b")))

    assert not [run.error for run in ledger.runs if run.error]
    assert {each.destination.nodes for each in ledger.evictions} == {("n2",)}


def with_pools(pools):
    return {**RELIEF, "pools": pools}


@given(
    used=st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), min_size=1, max_size=6),
    offset=st.integers(-40, 40),
    bounds=st.tuples(st.integers(0, 100), st.integers(0, 100)),
    more=st.integers(0, 60),
)
def test_an_offset_is_the_same_as_other_bounds(used, offset, bounds, more):
    """A node with an offset answers as one without it that has these points added to every bound, within 0 to 100."""
    given_bounds = {"cpu": float(bounds[0]), "memory": float(bounds[1])}
    moved = {name: min(max(bound + offset, 0.0), 100.0) for name, bound in given_bounds.items()}
    for cpu, memory in used:
        amounts, added = {"cpu": cpu * 100, "memory": memory << 30}, {"cpu": more * 100, "memory": more << 30}
        shifted = NodeUtilization(node("n"), amounts, dict.fromkeys(given_bounds, float(offset)))
        plain = NodeUtilization(node("n"), amounts)

        assert shifted.above(given_bounds) == plain.above(moved)
        assert shifted.passed(added, given_bounds) == plain.passed(added, moved)
        assert shifted.headroom(given_bounds) == plain.headroom(moved)
        assert shifted.short_of(given_bounds) == plain.short_of(moved)
        assert shifted.above(given_bounds, {"cpu": more}) == plain.above(moved, {"cpu": more})
