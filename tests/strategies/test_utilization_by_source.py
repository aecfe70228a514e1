"""Low- and HighNodeUtilization on what a source has measured, by the descheduler's rules."""

from datetime import timedelta

import pytest

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import Measured
from rebalancer.report.words import notice_text, text
from strategies.high_node_utilization import HighNodeUtilization, HighNodeUtilizationArgs
from strategies.low_node_utilization import LowNodeUtilization, LowNodeUtilizationArgs
from tests.make import decide, evicted, node, pod, refused, snapshot

SOURCE = {"source": "KubernetesMetrics"}


def on(nodes, pods, figures):
    """A cluster with these figures, whatever is asked."""
    return Cluster(snapshot(nodes, pods), measure=lambda *_: figures)


def cpu(**amounts):
    return {name: {"cpu": amount, "memory": 0} for name, amount in amounts.items()}


def low(**args):
    whole = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}, "metricsUtilization": SOURCE, **args}
    return LowNodeUtilization(LowNodeUtilizationArgs.model_validate(whole))


def high(thresholds):
    whole = {"thresholds": thresholds, "metricsUtilization": SOURCE}
    return HighNodeUtilization(HighNodeUtilizationArgs.model_validate(whole))


def test_measured_usage_tells_idle_nodes():
    """By requests n1 would be the full one; by usage it is emptied, into the node that requests nothing."""
    figures = Measured(cpu(n1=100, n2=2000), cpu(n1=100, n2=2000), {("default", "p"): {"cpu": 100, "memory": 0}})
    ledger = decide(on([node("n1"), node("n2")], [pod("p", node="n1", cpu="3")], figures), high({"cpu": 30}))

    assert evicted(ledger) == ["p"]
    assert text(ledger.evictions[0].because) == "n1 at cpu 2.5 % <= 30 %"


@pytest.mark.parametrize(("peak", "gone"), [(400, ["a"]), (3000, [])])
def test_destinations_go_by_their_peak(peak, gone):
    """A node that was idle by its median only is not a destination."""
    figures = Measured(
        cpu(n1=3600, n2=100),
        cpu(n1=3900, n2=peak),
        {("default", "a"): {"cpu": 3000, "memory": 0}},
        window=timedelta(minutes=15),
    )

    assert evicted(decide(on([node("n1"), node("n2")], [pod("a")], figures), low())) == gone


def test_pods_are_counted_whatever_the_source():
    """The number of pods does not matter of measuring: 6 of 10 slots are more than half."""
    nodes = [node("n1", pods=10), node("n2", pods=10)]
    pods = [pod(f"p{number}", age=100 - number) for number in range(6)]
    known = {each.key: {"cpu": 0, "memory": 0} for each in pods}
    figures = Measured(cpu(n1=0, n2=0), cpu(n1=0, n2=0), known)
    args = {"thresholds": {"pods": 30}, "targetThresholds": {"pods": 50}}

    assert evicted(decide(on(nodes, pods, figures), low(**args))) == ["p0"]


def test_a_pod_of_which_half_is_known_stays():
    """Its memory might be what fills the destination."""
    known = {("default", "a"): {"cpu": 1000}, ("default", "b"): {"cpu": 2000, "memory": 0}}
    figures = Measured(cpu(n1=3600, n2=100), cpu(n1=3600, n2=100), known)
    ledger = decide(on([node("n1"), node("n2")], [pod("a", age=9), pod("b", age=8)], figures), low())

    assert evicted(ledger) == ["b"]
    assert refused(ledger) == {"a": "NoUsage"}


def test_what_the_source_does_not_measure_fails_the_strategy():
    """An extended resource in thresholds, as in the descheduler."""
    args = {"thresholds": {"example.com/gpu": 30}, "targetThresholds": {"example.com/gpu": 50}}
    ledger = decide(on([node("n1"), node("n2")], [], Measured(cpu(n1=1, n2=1), cpu(n1=1, n2=1), {})), low(**args))

    assert ledger.runs[0].error == "thresholds name example.com/gpu, which this source does not measure"


def test_what_the_source_has_to_say_is_in_the_ledger():
    """With the strategy that asked."""
    figures = Measured(cpu(n1=1, n2=1), cpu(n1=1, n2=1), {}, warnings=("n3 is missing",))
    ledger = decide(on([node("n1"), node("n2")], [], figures), low())

    assert [notice_text(each) for each in ledger.warnings] == ["test/LowNodeUtilization: n3 is missing"]
