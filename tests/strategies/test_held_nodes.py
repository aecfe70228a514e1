"""Nodes that are kept empty: no strategy fills them, and the scheduler sees their taint."""

from datetime import timedelta
from functools import partial

import msgspec
import pytest

from rebalancer.cluster.cluster import Cluster
from rebalancer.eviction.causes import Code
from rebalancer.eviction.observation import UNDERUTILIZED
from rebalancer.eviction.steering import Held
from rebalancer.policy.moving import HOLD_KEY, PRESSURE_KEY
from rebalancer.report.words import text
from strategies.high_node_utilization import HighNodeUtilization, HighNodeUtilizationArgs
from strategies.low_node_utilization import LowNodeUtilization, LowNodeUtilizationArgs
from tests import make
from tests.measured import cluster as measured
from tests.measured import low, node, pod
from tests.strategies.test_high_node_utilization_compaction import compaction, scene
from tests.unit.memory.memories import recollection

MINUTE = timedelta(minutes=1)
UNTIL = make.NOW + 15 * MINUTE
TAINT = make.taint(f"{HOLD_KEY}:PreferNoSchedule")


def held(cluster, *names):
    """The same cluster with these nodes held, as a cycle sees it."""
    nodes = [
        msgspec.structs.replace(each, taints=(*each.taints, TAINT), held_until=UNTIL) if each.name in names else each
        for each in cluster.snapshot.nodes
    ]
    snapshot = msgspec.structs.replace(cluster.snapshot, nodes=tuple(nodes)).unmarked((), HOLD_KEY, PRESSURE_KEY)
    return Cluster(snapshot, measure=lambda _, wanted: cluster.measure(wanted))


def counts(ledger):
    assert [run.error for run in ledger.runs] == [None]
    return ledger.runs[0].observed.counts


def thresholds(low=30, high=50, **args):
    bounds = {"thresholds": {"cpu": low}, "targetThresholds": {"cpu": high}, **args}
    return LowNodeUtilization(LowNodeUtilizationArgs.model_validate(bounds))


def full_and_idle():
    """n1 is full, n2 and n3 are idle; by requests and by usage."""
    pods = [pod(f"p{each}", cpu="1", age=9_000 - each) for each in range(8)]
    return measured([node("n1"), node("n2"), node("n3")], pods, {each.name: 10 for each in pods})


@pytest.mark.parametrize("strategy", [thresholds(), low()], ids=["by requests", "relief"])
def test_low_node_utilization_does_not_fill_a_held_node(strategy):
    """It is not among those that are underutilized; where all that are idle are held, nothing moves."""
    free, one, both = (make.decide(held(full_and_idle(), *names), strategy) for names in ((), ("n2",), ("n2", "n3")))

    assert [counts(each)["under"] for each in (free, one, both)] == [2, 1, 0]
    states = [[node.state for node in each.runs[0].observed.nodes] for each in (free, one, both)]
    assert [each.count(UNDERUTILIZED) for each in states] == [2, 1, 0]
    assert make.evicted(free)
    assert make.evicted(one)
    assert make.evicted(both) == []


@pytest.mark.parametrize("strategy", [thresholds, low], ids=["by requests", "relief"])
def test_a_held_node_does_not_count_in_the_mean(strategy):
    """n1 is at 80 %: with n2 and n3 the mean is 26.7 %, without n3 it is 40 %."""
    by_mean = strategy(10, 10, useDeviationThresholds=True)
    free, one = (make.decide(held(full_and_idle(), *names), by_mean) for names in ((), ("n3",)))

    assert [round(each.runs[0].observed.targets["cpu"]) for each in (free, one)] == [37, 50]


RECEIVES_NOTHING = "no destination: the scheduler would likely choose n2, which is held empty, young or about to go"


def test_a_pod_that_the_scheduler_may_put_on_a_held_node_stays():
    """It tolerates the taint; nobody else is kept from going."""
    pods = [pod("stays", tolerations=["*"], age=9_000), pod("goes", age=8_000), pod("rest", prefer_no_eviction=True)]
    on = measured([node("n1"), node("n2"), node("n3")], pods, {"stays": 10, "goes": 10, "rest": 45})
    ledger = make.decide(held(on, "n2"), low(40, 50))

    assert make.evicted(ledger) == ["goes"]
    (kept,) = (each for each in ledger.refusals if each.pod.name == "stays")
    assert text(kept.verdict.cause) == RECEIVES_NOTHING


def test_the_words_are_true_of_nodes_that_nobody_holds():
    """A node that has just come, or is about to go, receives nothing either."""
    young = node("n2", created=make.NOW - 5 * MINUTE)
    nodes = [node("n1"), young, node("n3", taints=["k:PreferNoSchedule"])]
    on = measured(nodes, [pod("p"), pod("q")], {"p": 40, "q": 40})
    ledger = make.decide(on, low(40, 50), recollection=recollection())

    assert {text(each.verdict.cause) for each in ledger.refusals} == {RECEIVES_NOTHING}


def test_high_node_utilization_does_not_empty_nodes_onto_a_held_one():
    """By the descheduler's rule too: pods have come to it, and still it is about to go."""
    strategy = HighNodeUtilization(HighNodeUtilizationArgs.model_validate({"thresholds": {"cpu": 15}}))
    free, one = (
        make.decide(held(scene({"a": ("n1", 10), "d": ("n3", 30)}), *names), strategy) for names in ((), ("n3",))
    )

    assert [counts(each)["receivers"] for each in (free, one)] == [1, 0]
    assert (make.evicted(free), make.evicted(one)) == (["a"], [])


#: n1 is emptied first; n3 is the fullest.
PLACES = {"a": ("n1", 10), "b": ("n2", 15), "c": ("n2", 5), "d": ("n3", 30)}


def test_what_a_held_node_has_free_is_no_room_to_keep():
    """Without n1 70 % of the others are free; n3 is about to go, and of n2 alone 60 % are."""
    places = {"a": ("n1", 10), "b": ("n2", 30), "d": ("n3", 20)}
    strategy = compaction(thresholds=15, keepFree={"cpu": 65})
    free, one = (make.decide(held(scene(places), *names), strategy) for names in ((), ("n3",)))

    assert make.evicted(free) == ["a"]
    assert make.refused(one) == {"a": Code.KEEP_FREE.value}


def test_a_held_node_does_not_count_among_those_that_its_group_keeps():
    """Of three nodes one is held: with two to stay, none of the others may go."""
    nodes = [node(name, labels={"group": "a"}) for name in ("n1", "n2", "n3")]
    strategy = compaction(thresholds=15, nodeGroups={"label": "group", "keep": 2})
    free, one = (make.decide(held(scene(PLACES, nodes), *names), strategy) for names in ((), ("n3",)))

    assert make.evicted(free) == ["a"]
    assert make.refused(one) == {"a": Code.NODE_GROUP.value}


def test_no_other_strategy_of_the_cycle_fills_a_node_that_one_has_emptied():
    """n1 is emptied onto n3, which is above its target then; it would take the pods back."""
    places = {"a": ("n1", 20), "d": ("n3", 40)}
    relief = low(30, 50)
    with_hold, without = (
        make.decide(scene(places), compaction(thresholds=20), relief, hold=hold)
        for hold in (partial(Held, until=UNTIL), None)
    )

    assert [each.runs[1].observed.counts["under"] for each in (with_hold, without)] == [1, 2]
