"""LowNodeUtilization on usage that is not requests, with and without figures for single pods (strategies.md 3.7)."""

import pytest

from rebalancer.api import Bounds, Cluster, Evict, Relocation
from rebalancer.balancing.usage import Usage
from rebalancer.cluster.resources import METRIC_RESOURCE
from rebalancer.eviction.verdict import Unknown
from rebalancer.report.words import text
from strategies.low_node_utilization import LowNodeUtilization, LowNodeUtilizationArgs
from tests.make import cluster, decide, evicted, node, pod, refused


class Measured(LowNodeUtilization):
    """The strategy with the usage that the test gives it."""

    given: Usage

    def run(self, cluster: Cluster, evict: Evict) -> None:
        args = self.args
        bounds = Bounds(args.thresholds, args.target_thresholds, args.use_deviation_thresholds)
        relocation = Relocation(cluster, evict, self.given, self._wanted, args.eviction_limits.node)
        relocation.relieve(bounds, args.number_of_nodes)


def measured(usage, resource=METRIC_RESOURCE, **args):
    whole = {"thresholds": {resource: 30}, "targetThresholds": {resource: 50}, **args}
    strategy = Measured(LowNodeUtilizationArgs.model_validate(whole))
    strategy.given = usage
    return strategy


def shares(**percents):
    """One figure a node and none for pods, as the descheduler has it from Prometheus."""
    return Usage({name: {METRIC_RESOURCE: percent} for name, percent in percents.items()})


def four_pods_each(*names):
    """Pods without requests: `n1-1` is the oldest of n1."""
    nodes = [node(name) for name in names]
    return cluster(nodes, [pod(f"{name}-{i}", node=name, cpu=None, age=1000 - i) for name in names for i in range(4)])


def test_without_figures_for_pods_one_pod_leaves_each_full_node():
    """Nobody could tell when a node has lost enough, so one has to do."""
    ledger = decide(four_pods_each("n1", "n2", "n3"), measured(shares(n1=80, n2=60, n3=10)))

    assert evicted(ledger) == ["n1-0", "n2-0"]
    assert [text(entry.because) for entry in ledger.evictions] == [
        "n1 at MetricResource 80 % > 50 %",
        "n2 at MetricResource 60 % > 50 %",
    ]


@pytest.mark.parametrize(("limit", "count"), [(0, 0), (1, 1), (3, 3), (9, 4)])
def test_eviction_limits_say_how_many_instead(limit, count):
    """With evictionLimits.node just as many go, for want of better knowledge."""
    strategy = measured(shares(n1=80, n2=10), evictionLimits={"node": limit})

    assert len(evicted(decide(four_pods_each("n1", "n2"), strategy))) == count


def test_a_refused_pod_does_not_count_as_the_one():
    """The next candidate goes in its place."""
    on = cluster(
        [node("n1"), node("n2")],
        [
            pod("pinned", age=99, node_selector={"kubernetes.io/hostname": "n1"}),
            pod("free", age=9),
            pod("more", age=1),
        ],
    )
    ledger = decide(on, measured(shares(n1=80, n2=10)), evictor={"nodeFit": True})

    assert evicted(ledger) == ["free"]


def test_a_pods_usage_is_moved_from_its_node_to_the_room():
    """Requests play no part: each pod uses two cores of eight, and the second brings the node to its target."""
    usage = Usage({"n1": {"cpu": 7500}, "n2": {"cpu": 0}}, lambda _: {"cpu": 2000})
    on = cluster([node("n1", cpu="8"), node("n2", cpu="8")], [pod(f"p{i}", age=100 - i) for i in range(4)])

    assert evicted(decide(on, measured(usage, "cpu"))) == ["p0", "p1"]


def test_a_pod_whose_usage_is_unknown_stays():
    """Where the source knows pods but not this one, it is passed over and the ledger says so."""
    usage = Usage({"n1": {"cpu": 5000}, "n2": {"cpu": 0}}, lambda each: None if each.name == "p0" else {"cpu": 2000})
    on = cluster([node("n1", cpu="8"), node("n2", cpu="8")], [pod(f"p{i}", age=100 - i) for i in range(4)])
    ledger = decide(on, measured(usage, "cpu"))

    assert evicted(ledger) == ["p1"]
    assert refused(ledger) == {"p0": "NoUsage"}


def test_a_node_without_usage_is_neither_source_nor_destination():
    """Nor does it count in the mean: 80 and 10 have the mean 45, with 0 for n3 it would be 30."""
    strategy = measured(
        shares(n1=80, n2=40),
        useDeviationThresholds=True,
        thresholds={METRIC_RESOURCE: 20},
        targetThresholds={METRIC_RESOURCE: 19},
    )

    assert evicted(decide(four_pods_each("n1", "n2", "n3"), strategy)) == ["n1-0"]
    assert evicted(decide(four_pods_each("n1", "n3", "n4"), measured(shares(n1=80)))) == []


class Unanswered:
    """A sink whose API server takes the request and never answers."""

    def evict(self, pod, profile, strategy, because, recheck):
        return Unknown("no answer")


def test_an_eviction_without_an_answer_counts_as_one():
    """The pod may be gone, so the node is not drained further for it."""
    usage = Usage({"n1": {"cpu": 5000}, "n2": {"cpu": 0}}, lambda _: {"cpu": 2000})
    on = cluster([node("n1", cpu="8"), node("n2", cpu="8")], [pod(f"p{i}", age=100 - i) for i in range(4)])
    ledger = decide(on, measured(usage, "cpu"), sink=Unanswered())

    assert [entry.pod.name for entry in ledger.unknown] == ["p0"]


def test_without_a_source_nothing_is_decided():
    """The strategy says so and does nothing, rather than deciding on requests."""
    args = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}, "metricsUtilization": {"metricsServer": True}}
    ledger = decide(four_pods_each("n1", "n2"), LowNodeUtilization(LowNodeUtilizationArgs.model_validate(args)))

    assert "there is no source of real usage" in ledger.runs[0].error
    assert ledger.evictions == []
