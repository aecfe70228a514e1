"""What a window hides: pods that have left still count in its figure, pods that came do not yet."""

from datetime import timedelta

from tests.make import because, decide, refused
from tests.measured import cluster, low, node, pod, points

NODES = (node("n1"), node("n2"))
QUARTER = {"window": timedelta(minutes=15)}


def test_both_figures_must_be_over():
    """The window says 60, the present pods 75 and 5 nobody's: 10 are over, and one of 10 cures."""
    nodes = {"n1": points(60), "n2": points(0)}
    ledger = decide(
        cluster(
            NODES, [pod("a"), pod("b"), pod("c")], {"a": 45, "b": 20, "c": 10}, measured={**QUARTER, "nodes": nodes}
        ),
        low(),
    )

    assert because(ledger) == {
        "c": "n1 at cpu 60 % > 50 %: 10 points over; relieves 10 points; likely lands on n2 (cpu 0 % -> 10 %)",
    }


def test_what_left_earlier_in_the_cycle_is_gone():
    """The second run sees the node without the pods that the first one took, though the figures are the same."""
    on = cluster(NODES, [pod("a"), pod("b"), pod("c")], {"a": 30, "b": 30, "c": 20})
    ledger = decide(on, low(), low())

    assert [run.evicted for run in ledger.runs] == [1, 0]


def test_the_name_may_have_been_another_pods():
    """web-0 was measured on n2 and runs on n1 since: what it uses here is unknown."""
    pods = [pod("web-0"), pod("rest")]
    measured = {"pod_nodes": {("default", "web-0"): "n2"}, "nodes": {"n1": points(80), "n2": points(10)}}
    ledger = decide(cluster(NODES, pods, {"web-0": 40, "rest": 51}, measured=measured), low())

    assert refused(ledger) == {"web-0": "NoUsage", "rest": "NoDestination"}
