"""Low- and HighNodeUtilization: which pods leave full and idle nodes, in which order, and why (strategies.md 3, 4)."""

from rebalancer.report.words import text
from strategies import HighNodeUtilization, LowNodeUtilization
from tests.make import because, cluster, decide, evicted, node, owner, pod, refused

IDLE, FULL = {"cpu": 30, "pods": 30}, {"cpu": 50, "pods": 50}


def low():
    return LowNodeUtilization(LowNodeUtilization.Args.model_validate({"thresholds": IDLE, "targetThresholds": FULL}))


def high(**args):
    return HighNodeUtilization(HighNodeUtilization.Args.model_validate({"thresholds": IDLE, **args}))


def pods(count, on="n1", prefix="p", **fields):
    """Pods of 400m, `p1` the oldest."""
    fields = {"cpu": "400m", **fields}
    return [pod(f"{prefix}{each}", node=on, age=10_000 - each, **fields) for each in range(1, count + 1)]


def test_a_full_node_loses_pods_until_it_is_within_its_targets():
    """Each eviction carries the figures of that moment, and the one that brings the node to its cap is the last."""
    nodes = [node("n1", pods=100), node("n2", pods=100), node("n3", pods=100)]
    ledger = decide(cluster(nodes, pods(7)), low())

    assert because(ledger) == {"p1": "n1 at cpu 70 % > 50 %", "p2": "n1 at cpu 60 % > 50 %"}
    assert ledger.refusals == []


def test_protected_pods_of_full_nodes_are_refused_in_the_ledger():
    """Why a pod of a full node stays can be read; pods of other nodes are not mentioned."""
    daemon = pod("daemon", owners=[owner("agent", kind="DaemonSet")], age=99_999)
    quiet = pod("quiet", node="n2", owners=[owner("agent", kind="DaemonSet")])
    ledger = decide(cluster([node("n1"), node("n2")], [daemon, quiet, *pods(6)]), low())

    assert refused(ledger) == {"daemon": "DaemonSetPods"}
    assert [text(entry.because) for entry in ledger.refusals] == ["n1 at cpu 62.5 % > 50 %"]


def test_once_the_room_is_spent_nothing_more_is_looked_at():
    """The first node takes all the room; the protected pod of the second is not even mentioned."""
    on_n2 = [pod("daemon", node="n2", owners=[owner("agent", kind="DaemonSet")]), *pods(6, "n2", "m")]
    nodes = [node("n1"), node("n2"), node("n3", pods=2)]
    ledger = decide(cluster(nodes, [*pods(8, memory="1Gi"), *on_n2]), low())

    assert evicted(ledger) == ["p1"]
    assert refused(ledger) == {}


def busy(name="busy", count=4, **fields):
    """A node at 40 %, and its pods."""
    return node(name, **fields), pods(count, name, f"{name}-")


def test_an_idle_node_is_emptied():
    """All its pods go, the cheapest first, each with the figures of that moment."""
    target, residents = busy()
    on = cluster([node("n1"), target], [pod("costly", priority=9, age=99_999, cpu="200m"), *pods(2), *residents])
    ledger = decide(on, high())

    assert [(entry.pod.name, text(entry.because)) for entry in ledger.evictions] == [
        ("p1", "n1 at cpu 25 % <= 30 %, pods 2.7 % <= 30 %"),
        ("p2", "n1 at cpu 15 % <= 30 %, pods 1.8 % <= 30 %"),
        ("costly", "n1 at cpu 5 % <= 30 %, pods 0.9 % <= 30 %"),
    ]


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
    ledger = decide(on, high(evictableNamespaces={"exclude": ["kept"]}), evictor={"nodeFit": True})

    assert evicted(ledger) == ["free"]
    assert refused(ledger) == {"daemon": "DaemonSetPods", "intolerant": "NoDestination", "pinned": "NodeFit"}
