"""HighNodeUtilization: which pods leave idle nodes, in which order, and why (strategies.md 4)."""

import pytest

from rebalancer.report.words import text
from strategies.high_node_utilization import HighNodeUtilization, HighNodeUtilizationArgs
from tests.make import cluster, decide, evicted, node, owner, pod, refused
from tests.measured import RELIEF
from tests.strategies.test_low_node_utilization import pods


def strategy(thresholds=None, **args):
    return HighNodeUtilization(
        HighNodeUtilizationArgs.model_validate({"thresholds": thresholds or {"cpu": 30, "pods": 30}, **args})
    )


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


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"thresholds": {}}, "give at least one resource"),
        ({"evictionModes": ["Invalid"]}, "OnlyThresholdingResources"),
        ({"evictableNamespaces": {"include": ["a"]}}, "only exclude can be given"),
        ({"destinationThresholds": {"cpu": 70}}, "goes with metricsUtilization and its selection: relief only"),
        ({"destinationThresholds": {"cpu": 10}, "metricsUtilization": RELIEF}, "cpu are greater than their destin"),
        ({"keepFree": {"cpu": 10}}, "keepFree and nodeGroups go with selection: compaction only"),
        ({"nodeGroups": {"label": "pool"}}, "keepFree and nodeGroups go with selection: compaction only"),
        ({"selection": "compaction", "metricsUtilization": RELIEF}, "exclude each other"),
        ({"metricsUtilization": {**RELIEF, "pools": {"label": "pool"}}}, "LowNodeUtilization only"),
        ({"selection": "compaction", "destinationThresholds": {"cpu": 10}}, "cpu are greater than their destination"),
    ],
)
def test_bad_arguments_are_told(args, message):
    """Rules of the descheduler's validation, and what means nothing or contradicts itself in ours."""
    with pytest.raises(ValueError, match=message):
        HighNodeUtilizationArgs.model_validate({"thresholds": {"cpu": 20}, **args})
