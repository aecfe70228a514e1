"""LowNodeUtilization: which pods leave full nodes, in which order, and why (strategies.md 3)."""

import pytest

from rebalancer.report.words import text
from strategies.low_node_utilization import LowNodeUtilization, LowNodeUtilizationArgs
from tests.make import because, cluster, decide, evicted, node, owner, pod, refused
from tests.measured import RELIEF


def strategy(low=30, high=50, **args):
    """Thresholds on cpu and pods unless a map is given."""
    thresholds = low if isinstance(low, dict) else {"cpu": low, "pods": low}
    targets = high if isinstance(high, dict) else {"cpu": high, "pods": high}
    return LowNodeUtilization(
        LowNodeUtilizationArgs.model_validate({"thresholds": thresholds, "targetThresholds": targets, **args})
    )


def pods(count, on="n1", prefix="p", **fields):
    """Pods of 400m, `p1` the oldest."""
    fields = {"cpu": "400m", **fields}
    return [pod(f"{prefix}{each}", node=on, age=10_000 - each, **fields) for each in range(1, count + 1)]


CONTENTION = {"thresholds": {"contention": 5}, "targetThresholds": {"contention": 10}}


def test_a_full_node_loses_pods_until_it_is_within_its_targets():
    """Each eviction carries the figures of that moment, and the one that brings the node to its cap is the last."""
    nodes = [node("n1", pods=100), node("n2", pods=100), node("n3", pods=100)]
    ledger = decide(cluster(nodes, pods(7)), strategy())

    assert because(ledger) == {"p1": "n1 at cpu 70 % > 50 %", "p2": "n1 at cpu 60 % > 50 %"}
    assert ledger.refusals == []


def test_protected_pods_of_full_nodes_are_refused_in_the_ledger():
    """Why a pod of a full node stays can be read; pods of other nodes are not mentioned."""
    daemon = pod("daemon", owners=[owner("agent", kind="DaemonSet")], age=99_999)
    quiet = pod("quiet", node="n2", owners=[owner("agent", kind="DaemonSet")])
    ledger = decide(cluster([node("n1"), node("n2")], [daemon, quiet, *pods(6)]), strategy())

    assert refused(ledger) == {"daemon": "DaemonSetPods"}
    assert [text(entry.because) for entry in ledger.refusals] == ["n1 at cpu 62.5 % > 50 %"]


def test_once_the_room_is_spent_nothing_more_is_looked_at():
    """The first node takes all the room; the protected pod of the second is not even mentioned."""
    on_n2 = [pod("daemon", node="n2", owners=[owner("agent", kind="DaemonSet")]), *pods(6, "n2", "m")]
    nodes = [node("n1"), node("n2"), node("n3", pods=2)]
    ledger = decide(cluster(nodes, [*pods(8, memory="1Gi"), *on_n2]), strategy())

    assert evicted(ledger) == ["p1"]
    assert refused(ledger) == {}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"thresholds": {}}, "give at least one resource"),
        ({"thresholds": {"cpus": 20}}, "'cpus' is not a resource"),
        ({"thresholds": {"cpu": 20, "memory": 20}}, "must name the same resources; only one has memory"),
        ({"thresholds": {"cpu": 60}}, "the thresholds of cpu are greater than their targetThresholds"),
        (CONTENTION, "since it is measured"),
        (CONTENTION | {"metricsUtilization": RELIEF, "useDeviationThresholds": True}, "no mean worth keeping to"),
        (
            {"metricsUtilization": {**RELIEF, "pools": {"label": "l", "moves": "across"}}},
            "changes nothing where thresh",
        ),
    ],
)
def test_bad_arguments_are_told(args, message):
    """Each rule of the descheduler's validation, and those that it only notices later."""
    whole = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}, **args}

    with pytest.raises(ValueError, match=message):
        LowNodeUtilizationArgs.model_validate(whole)
