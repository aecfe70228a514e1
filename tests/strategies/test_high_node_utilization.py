"""HighNodeUtilization: which pods leave idle nodes, in which order, and why (strategies.md 4)."""

import pytest

from rebalancer.engine.limits import Limits
from rebalancer.report.words import text
from strategies.high_node_utilization import HighNodeUtilization, HighNodeUtilizationArgs
from tests.make import cluster, decide, evicted, node, owner, pod, refused


def strategy(thresholds=None, **args):
    return HighNodeUtilization(
        HighNodeUtilizationArgs.model_validate({"thresholds": thresholds or {"cpu": 30, "pods": 30}, **args})
    )


def pods(count, on="n1", prefix="p", **fields):
    """Pods of 400m, `p1` the oldest."""
    fields = {"cpu": "400m", **fields}
    return [pod(f"{prefix}{each}", node=on, age=10_000 - each, **fields) for each in range(1, count + 1)]


def busy(name="busy", count=4, **fields):
    """A node at 40 %, and its pods."""
    return node(name, **fields), pods(count, name, f"{name}-")


def test_an_idle_node_is_emptied():
    """All its pods go, the cheapest first, each with the figures of that moment."""
    target, residents = busy()
    on = cluster([node("n1"), target], [pod("costly", priority=9, age=99_999, cpu="200m"), *pods(2), *residents])
    ledger = decide(on, strategy())

    assert [(entry.pod.name, text(entry.because)) for entry in ledger.evictions] == [
        ("p1", "n1 at cpu 25 % <= 30 %, pods 2.7 % <= 30 %"),
        ("p2", "n1 at cpu 15 % <= 30 %, pods 1.8 % <= 30 %"),
        ("costly", "n1 at cpu 5 % <= 30 %, pods 0.9 % <= 30 %"),
    ]


def test_exactly_at_the_threshold_is_idle():
    """Thirty percent at a threshold of thirty is emptied, more than that is a destination."""
    on = cluster([node("n1", pods=10), node("n2", pods=10)], [*pods(3), *pods(4, "n2", "q")])

    assert evicted(decide(on, strategy({"pods": 30}))) == ["p1", "p2", "p3"]


def test_every_resource_must_be_idle():
    """A node that is full in one resource is a destination, however idle in the others."""
    on = cluster([node("n1"), node("n2")], [*pods(1, memory="8Gi"), *pods(1, "n2", "q")])

    assert evicted(decide(on, strategy({"cpu": 30, "memory": 30}))) == ["q1"]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param([node("n1"), node("busy", unschedulable=True)], [], id="the destination is cordoned"),
        pytest.param([node("n1", unschedulable=True), node("busy")], ["p1"], id="the source is cordoned"),
        pytest.param([node("n1"), node("busy", cpu="40")], [], id="all are idle"),
        pytest.param([node("n1", cpu="1"), node("busy")], [], id="none is idle"),
    ],
)
def test_who_is_source_and_who_is_destination(nodes, expected):
    """Cordoned nodes are emptied too and take nothing; without a source or a destination nothing happens."""
    on = cluster(nodes, [*pods(1), *pods(4, "busy", "busy-")])

    assert evicted(decide(on, strategy())) == expected


@pytest.mark.parametrize(("number", "expected"), [(1, ["p1"]), (2, [])])
def test_number_of_nodes_must_be_exceeded(number, expected):
    """Two nodes are idle, the empty one among them."""
    target, residents = busy()
    on = cluster([node("n1"), node("empty"), target], [*pods(1), *residents])

    assert evicted(decide(on, strategy(numberOfNodes=number))) == expected


def test_the_emptiest_node_goes_first_until_the_destinations_are_full():
    """1600m of 2400m are taken, so two pods of 400m fill the rest and the third stays where it is."""
    target, residents = busy(cpu="2400m")
    on = cluster([node("n1"), node("n2"), target], [*pods(2, "n1", "p"), *pods(1, "n2", "q"), *residents])

    assert evicted(decide(on, strategy())) == ["q1", "p1"]


def test_room_is_needed_in_every_tracked_resource():
    """A destination without memory left, or without the extended resource of the thresholds, takes nothing."""
    gpu = {"example.com/gpu": "8"}
    target, residents = busy(memory="1Gi")
    full = cluster([node("n1"), target], [*pods(1), *residents, pod("hog", node="busy", memory="1Gi")])
    assert evicted(decide(full, strategy())) == []

    both = {"cpu": 30, "example.com/gpu": 40}
    target, residents = busy(extra=dict(gpu))
    offered = cluster([node("n1", extra=dict(gpu)), target], [*pods(1), *residents])
    assert evicted(decide(offered, strategy(both))) == ["p1"]
    target, residents = busy()
    missing = cluster([node("n1", extra=dict(gpu)), target], [*pods(1), *residents])
    assert evicted(decide(missing, strategy(both))) == []


def test_only_thresholding_resources():
    """A container must have an entry for one of them, be it zero; nobody requests pods."""
    target, residents = busy()
    mixed = [
        pod("zero", cpu=None, age=30, requests={"cpu": "0"}),
        pod("memory", cpu=None, age=20, memory="1Mi"),
        pod("nothing", cpu=None, age=10),
    ]
    on = [node("n1"), target], [*mixed, *residents]
    mode = {"evictionModes": ["OnlyThresholdingResources"]}

    assert evicted(decide(cluster(*on), strategy({"cpu": 30}, **mode))) == ["zero"]
    assert evicted(decide(cluster(*on), strategy({"cpu": 30}))) == ["zero", "memory", "nothing"]
    only_pods = decide(cluster([node("n1", pods=10), node("busy", pods=10)], on[1]), strategy({"pods": 30}, **mode))
    assert evicted(only_pods) == []


def test_what_stays_is_told():
    """Protected pods, pods that tolerate no destination, and pods that fit nowhere are refused in the ledger."""
    target, residents = busy(taints=["a:PreferNoSchedule"])
    pinned = {"tolerations": ["a"], "node_selector": {"kubernetes.io/hostname": "n1"}}
    on = cluster(
        [node("n1"), target],
        [
            pod("daemon", owners=[owner("agent", kind="DaemonSet")]),
            pod("intolerant"),
            pod("pinned", **pinned),
            pod("kept", namespace="kept", tolerations=["a"]),
            pod("free", tolerations=["a"]),
            *residents,
        ],
    )
    ledger = decide(on, strategy(evictableNamespaces={"exclude": ["kept"]}), evictor={"nodeFit": True})

    assert evicted(ledger) == ["free"]
    assert refused(ledger) == {"daemon": "DaemonSetPods", "intolerant": "NoDestination", "pinned": "NodeFit"}


def test_limits():
    """A node at its limit gives way to the next, a namespace at its limit to the next pod, the total ends it."""

    def fresh():
        target, residents = busy()
        sources = [*pods(1, prefix="a"), *pods(1, prefix="b", namespace="other"), *pods(3, "n2", "q")]
        return cluster([node("n1"), node("n2"), target], [*sources, *residents])

    assert evicted(decide(fresh(), strategy(), limits=Limits(per_node=1))) == ["a1", "q1"]
    assert evicted(decide(fresh(), strategy(), limits=Limits(per_namespace=1))) == ["a1", "b1"]
    assert evicted(decide(fresh(), strategy(), limits=Limits(total=2))) == ["a1", "b1"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"thresholds": {}}, "give at least one resource"),
        ({"thresholds": {"memory": 101}}, "less than or equal to 100"),
        ({"evictionModes": ["Invalid"]}, "OnlyThresholdingResources"),
        ({"evictableNamespaces": {"include": ["a"]}}, "only exclude can be given"),
        ({"targetThresholds": {"cpu": 50}}, "Extra inputs"),
    ],
)
def test_bad_arguments_are_told(args, message):
    """Each rule of the descheduler's validation; what belongs to LowNodeUtilization is unknown here."""
    with pytest.raises(ValueError, match=message):
        HighNodeUtilizationArgs.model_validate({"thresholds": {"cpu": 20}, **args})
