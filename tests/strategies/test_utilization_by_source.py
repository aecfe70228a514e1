"""Low- and HighNodeUtilization on what a source has measured, by the descheduler's rules (strategies.md 3.7)."""

from datetime import timedelta

import pytest

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import Measured
from rebalancer.cluster.resources import METRIC_RESOURCE
from rebalancer.eviction.verdict import Unknown
from rebalancer.report.words import notice_text, text
from strategies.high_node_utilization import HighNodeUtilization, HighNodeUtilizationArgs
from strategies.low_node_utilization import LowNodeUtilization, LowNodeUtilizationArgs
from tests.make import decide, evicted, node, pod, refused, snapshot
from tests.unit.engine.stand_ins import AnsweringSink

SOURCE = {"source": "KubernetesMetrics"}
QUERY = {"source": "Prometheus", "prometheus": {"query": "load"}}
TWO = [node("n1"), node("n2")]


def on(nodes, pods, figures):
    """A cluster with these figures, whatever is asked."""
    return Cluster(snapshot(nodes, pods), measure=lambda *_: figures)


def cpu(pods, **amounts):
    """Figures of nodes, and of pods of the default namespace by name."""
    found = {name: {"cpu": amount, "memory": 0} for name, amount in amounts.items()}
    return Measured(found, found, {("default", name): {"cpu": amount, "memory": 0} for name, amount in pods.items()})


def low(**args):
    whole = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}, "metricsUtilization": SOURCE, **args}
    return LowNodeUtilization(LowNodeUtilizationArgs.model_validate(whole))


def by_share(low_share=30, high_share=50, **args):
    """One figure a node and none for pods, as the descheduler has it from Prometheus."""
    thresholds = {"thresholds": {METRIC_RESOURCE: low_share}, "targetThresholds": {METRIC_RESOURCE: high_share}}
    return low(**thresholds, metricsUtilization=QUERY, **args)


def shares(pods=None, **percents):
    """A cluster of these nodes, with four pods each unless given: `n1-0` is the oldest of n1."""
    figures = {name: {METRIC_RESOURCE: percent} for name, percent in percents.items() if percent is not None}
    four = [pod(f"{name}-{i}", node=name, cpu=None, age=1000 - i) for name in percents for i in range(4)]
    return on([node(name) for name in percents], four if pods is None else pods, Measured(figures, figures, None))


def test_measured_usage_tells_idle_nodes():
    """By requests n1 would be the full one; by usage it is emptied, into the node that requests nothing."""
    strategy = HighNodeUtilization(
        HighNodeUtilizationArgs.model_validate({"thresholds": {"cpu": 30}, "metricsUtilization": SOURCE})
    )
    ledger = decide(on(TWO, [pod("p", node="n1", cpu="3")], cpu({"p": 100}, n1=100, n2=2000)), strategy)

    assert evicted(ledger) == ["p"]
    assert text(ledger.evictions[0].because) == "n1 at cpu 2.5 % <= 30 %"


def test_without_figures_for_pods_one_pod_leaves_each_full_node():
    """Nobody could tell when a node has lost enough, so one has to do."""
    ledger = decide(shares(n1=80, n2=60, n3=10), by_share())

    assert evicted(ledger) == ["n1-0", "n2-0"]
    assert [text(entry.because) for entry in ledger.evictions] == [
        "n1 at MetricResource 80 % > 50 %",
        "n2 at MetricResource 60 % > 50 %",
    ]


@pytest.mark.parametrize(("limit", "count"), [(0, 0), (1, 1), (3, 3), (9, 4)])
def test_eviction_limits_say_how_many_instead(limit, count):
    """With evictionLimits.node just as many go, for want of better knowledge."""
    assert len(evicted(decide(shares(n1=80, n2=10), by_share(evictionLimits={"node": limit})))) == count


def test_a_refused_pod_does_not_count_as_the_one():
    pinned = pod("pinned", age=99, node_selector={"kubernetes.io/hostname": "n1"})
    pods = [pinned, pod("free", age=9), pod("more", age=1)]

    assert evicted(decide(shares(pods, n1=80, n2=10), by_share(), evictor={"nodeFit": True})) == ["free"]


def test_a_node_without_usage_is_neither_source_nor_destination():
    """Nor does it count in the mean: 80 and 40 have the mean 60, with 0 for n3 it would be 40."""
    mean = by_share(20, 19, useDeviationThresholds=True)

    assert evicted(decide(shares(n1=80, n2=40, n3=None), mean)) == ["n1-0"]
    assert evicted(decide(shares(n1=80, n3=None, n4=None), by_share())) == []


def test_an_eviction_without_an_answer_counts_as_one():
    """The pod may be gone, so the node is not drained further for it."""
    pods = [pod(f"p{i}", age=100 - i) for i in range(4)]
    figures = cpu(dict.fromkeys(("p0", "p1", "p2", "p3"), 1000), n1=2500, n2=0)
    ledger = decide(on(TWO, pods, figures), low(), sink=AnsweringSink({"p0": Unknown("no answer")}))

    assert [entry.pod.name for entry in ledger.unknown] == ["p0"]


@pytest.mark.parametrize(("peak", "gone"), [(400, ["a"]), (3000, [])])
def test_destinations_go_by_their_peak(peak, gone):
    """A node that was idle by its median only is not a destination."""
    usage = cpu({"a": 3000}, n1=3600, n2=100)
    figures = Measured(usage.nodes, cpu({}, n1=3900, n2=peak).nodes, usage.pods, window=timedelta(minutes=15))

    assert evicted(decide(on(TWO, [pod("a")], figures), low())) == gone


def test_a_pod_of_which_half_is_known_stays():
    """Its memory might be what fills the destination."""
    known = {("default", "a"): {"cpu": 1000}, ("default", "b"): {"cpu": 2000, "memory": 0}}
    nodes = cpu({}, n1=3600, n2=100).nodes
    ledger = decide(on(TWO, [pod("a", age=9), pod("b", age=8)], Measured(nodes, nodes, known)), low())

    assert evicted(ledger) == ["b"]
    assert refused(ledger) == {"a": "NoUsage"}


def test_what_the_source_has_to_say_is_in_the_ledger():
    nodes = cpu({}, n1=1, n2=1).nodes
    ledger = decide(on(TWO, [], Measured(nodes, nodes, {}, warnings=("n3 is missing",))), low())

    assert [notice_text(each) for each in ledger.warnings] == ["test/LowNodeUtilization: n3 is missing"]
