"""LowNodeUtilization: which pods leave full nodes, in which order, and why (strategies.md 3)."""

import pytest

from rebalancer.engine.limits import Limits
from rebalancer.report.words import text
from strategies.low_node_utilization import LowNodeUtilization, LowNodeUtilizationArgs
from tests.make import cluster, decide, evicted, node, owner, pod, refused


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


def two_nodes(full=8, idle=1, **idle_fields):
    """n1 has 9 pod slots and so a cap of 4, n2 has 10 and a cap of 5."""
    nodes = [node("n1", pods=9), node("n2", pods=10, **idle_fields)]
    return cluster(nodes, [*pods(full), *pods(idle, "n2", "q")])


def reasons(ledger):
    return {entry.pod.name: text(entry.because) for entry in ledger.evictions}


def test_a_full_node_loses_pods_until_it_is_within_its_targets():
    """Each eviction carries the figures of that moment, and the one that brings the node to its cap is the last."""
    nodes = [node("n1", pods=100), node("n2", pods=100), node("n3", pods=100)]
    ledger = decide(cluster(nodes, pods(7)), strategy())

    assert reasons(ledger) == {"p1": "n1 at cpu 70 % > 50 %", "p2": "n1 at cpu 60 % > 50 %"}
    assert ledger.refusals == []


def test_the_room_of_the_idle_nodes_ends_it():
    """n2 has a cap of five pods and holds one, so four may come although n1 stays above its target."""
    assert evicted(decide(two_nodes(full=9), strategy())) == ["p1", "p2", "p3", "p4"]


def test_the_cap_is_cut_off_to_whole_units():
    """Half of nine slots is four: a node with five pods is over its cap, one with four is not."""
    nodes = [node("n1", cpu="40", pods=9), node("n2", cpu="40", pods=90)]

    assert evicted(decide(cluster(nodes, pods(6)), strategy())) == ["p1", "p2"]


@pytest.mark.parametrize(
    ("on_full", "on_idle", "expected"),
    [
        pytest.param(6, 3, ["p1"], id="exactly at the threshold is under"),
        pytest.param(5, 3, [], id="exactly at the target is not over"),
        pytest.param(6, 4, [], id="no node is under"),
    ],
)
def test_where_under_ends_and_over_begins(on_full, on_idle, expected):
    """At or below a threshold is under, only above a target is over."""
    nodes = [node("n1", pods=100), node("n2", pods=100)]
    on = cluster(nodes, [*pods(on_full), *pods(on_idle, "n2", "q")])

    assert evicted(decide(on, strategy())) == expected


def test_a_cordoned_node_is_a_source_and_no_destination():
    """The full node may be cordoned; the idle one may not."""
    full_cordoned = cluster([node("n1", unschedulable=True), node("n2")], pods(6))
    idle_cordoned = cluster([node("n1"), node("n2", unschedulable=True)], pods(6))

    assert evicted(decide(full_cordoned, strategy())) == ["p1"]
    assert evicted(decide(idle_cordoned, strategy())) == []


@pytest.mark.parametrize(("number", "expected"), [(-1, ["p1"]), (1, ["p1"]), (2, [])])
def test_number_of_nodes_must_be_exceeded(number, expected):
    """Two nodes are under, which is more than one and not more than two."""
    on = cluster([node("n1"), node("n2"), node("n3")], pods(6))

    assert evicted(decide(on, strategy(numberOfNodes=number))) == expected


@pytest.mark.parametrize(("limit", "expected"), [(0, []), (2, ["p1", "p2"])])
def test_eviction_limits_hold_per_node(limit, expected):
    """evictionLimits.node counts what this strategy got from a node."""
    assert evicted(decide(two_nodes(), strategy(evictionLimits={"node": limit}))) == expected


def test_excluded_namespaces_count_and_stay():
    """Their pods make the node full; others have to go."""
    on = cluster([node("n1"), node("n2")], [*pods(5, namespace="kept", prefix="k"), *pods(3)])
    ledger = decide(on, strategy(evictableNamespaces={"exclude": ["kept"]}))

    assert evicted(ledger) == ["p1", "p2", "p3"]
    assert ledger.refusals == []


def test_the_fullest_node_goes_first_and_the_cheapest_pod_on_it():
    """Memory decides which node is fullest; priority and quality of service decide among its pods."""
    nodes = [node("n1"), node("n2"), node("n3", cpu="40")]
    on_n1 = pods(5, qos="BestEffort", priority=5) + pods(1, prefix="low-", qos="Guaranteed", priority=1)
    on_n2 = pods(6, "n2", "m", memory="1Gi")

    assert evicted(decide(cluster(nodes, on_n1 + on_n2), strategy())) == ["m1", "low-1"]


def test_the_last_pod_may_be_larger_than_the_room():
    """Room is checked before each pod and not for it: 200m are left, and a pod of 600m goes."""
    nodes = [node("n1", pods=100), node("n2", pods=100)]
    big = [pod(f"big{each}", cpu="600m", age=10_000 - each) for each in range(4)]
    rest = pods(3, "n2", "q")
    on = cluster(nodes, [*big, *rest])
    ledger = decide(on, strategy(low={"cpu": 30}, high={"cpu": 35}))

    assert evicted(ledger) == ["big0"]


def test_one_exhausted_resource_of_the_destinations_stops_all():
    """Memory is in no threshold, yet with none left on the destination nothing moves."""
    nodes = [node("n1"), node("n2", memory="1Gi")]
    on = cluster(nodes, [*pods(8), pod("hog", node="n2", memory="1Gi")])

    assert evicted(decide(on, strategy())) == []


def test_a_resource_without_a_target_counts_up_to_the_whole():
    """Once a node is over, memory above its capacity keeps it going although cpu is fine."""
    nodes = [node("n1", cpu="10", memory="10Gi"), node("n2", memory="100Gi", cpu="100")]
    on = cluster(nodes, pods(6, cpu="1", memory="3Gi"))
    ledger = decide(on, strategy(low={"cpu": 30}, high={"cpu": 50}))

    assert reasons(ledger) == {
        "p1": "n1 at cpu 60 % > 50 %, memory 180 % > 100 %",
        "p2": "n1 at memory 150 % > 100 %",
        "p3": "n1 at memory 120 % > 100 %",
    }


def test_extended_resources():
    """Thresholds may name them: what no destination offers has no room, what it offers is counted."""
    gpus = {"extra": {"example.com/gpu": "8"}}
    args = {"low": {"example.com/gpu": 30}, "high": {"example.com/gpu": 50}}
    on_n1 = pods(7, requests={"example.com/gpu": "1"})

    both = cluster([node("n1", **gpus), node("n2", extra=dict(gpus["extra"]))], on_n1)
    one = cluster([node("n1", extra={"example.com/gpu": "8"}), node("n2")], on_n1)
    assert evicted(decide(both, strategy(**args))) == ["p1", "p2", "p3"]
    assert evicted(decide(one, strategy(**args))) == []


def test_deviation_thresholds_are_distances_from_the_mean():
    """8, 1 and 0 of 10 pods: mean 30 %, the cordoned node included; over is above 35 %, under at most 25 %."""
    nodes = [node("n1", pods=10), node("n2", pods=10), node("n3", pods=10, unschedulable=True)]
    on = cluster(nodes, [*pods(8, cpu=None), *pods(1, "n2", "q", cpu=None)])
    ledger = decide(on, strategy({"pods": 5}, {"pods": 5}, useDeviationThresholds=True))

    assert reasons(ledger) == {"p1": "n1 at pods 80 % > 35 %", "p2": "n1 at pods 70 % > 35 %"}


def test_a_resource_that_no_node_offers_plays_no_part_in_deviation():
    """It has no mean, so it neither keeps a node from being under nor makes one over."""
    on = cluster([node("n1", pods=10), node("n2", pods=10)], pods(8, cpu=None))
    both = {"pods": 10, "example.com/gpu": 10}
    ledger = decide(on, strategy(both, both, useDeviationThresholds=True))

    assert evicted(ledger) == []  # its room is nothing all the same
    assert decide(on, strategy({"pods": 10}, {"pods": 10}, useDeviationThresholds=True)).evictions


@pytest.mark.parametrize(
    ("taints", "tolerations", "goes"),
    [
        pytest.param(["a:NoSchedule"], [], False, id="not tolerated"),
        pytest.param(["a:NoSchedule"], ["a"], True, id="tolerated"),
        pytest.param(["a:PreferNoSchedule"], [], False, id="a preference counts like the others"),
        pytest.param(["a:NoSchedule", "b:NoSchedule"], ["*"], False, id="fewer tolerations than taints"),
        pytest.param(["a:NoSchedule", "b:NoSchedule"], ["*", "x"], True, id="as many, whichever"),
    ],
)
def test_a_pod_must_tolerate_every_taint_of_some_destination(taints, tolerations, goes):
    """As in the descheduler, with at least as many tolerations as there are taints."""
    on = cluster([node("n1"), node("n2", taints=taints)], pods(6, tolerations=tolerations))
    ledger = decide(on, strategy())

    assert evicted(ledger) == (["p1"] if goes else [])
    assert set(refused(ledger).values()) == (set() if goes else {"NoDestination"})


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


def test_with_node_fit_what_fits_nowhere_stays():
    """It is refused in the ledger, and the next pod has its turn."""
    nodes = [node("n1"), node("n2")]
    pinned = pod("pinned", age=99_999, cpu="400m", node_selector={"kubernetes.io/hostname": "n1"})
    ledger = decide(cluster(nodes, [pinned, *pods(5)]), strategy(), evictor={"nodeFit": True})

    assert evicted(ledger) == ["p1"]
    assert refused(ledger) == {"pinned": "NodeFit"}


def test_limits():
    """A node at its limit gives way to the next, a namespace at its limit to the next pod, the total ends it."""
    nodes = [node("n1"), node("n2"), node("n3")]

    def fresh():
        # n1 is fuller than n2 by memory.
        on_n1 = [*pods(4, prefix="a", memory="1Gi"), *pods(4, prefix="b", namespace="other")]
        return cluster(nodes, [*on_n1, *pods(7, "n2", "m")])

    on_each = decide(fresh(), strategy(), limits=Limits(per_node=1))
    assert evicted(on_each) == ["a1", "m1"]
    assert refused(on_each) == {"b1": "NodeLimit", "m2": "NodeLimit"}
    in_each = decide(fresh(), strategy(), limits=Limits(per_namespace=1))
    assert evicted(in_each) == ["a1", "b1"]
    assert refused(in_each)["b4"] == "NamespaceLimit"
    ledger = decide(fresh(), strategy(), limits=Limits(total=2))
    assert evicted(ledger) == ["a1", "b1"]
    assert ledger.runs[0].error is None


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"thresholds": {}}, "give at least one resource"),
        ({"thresholds": {"cpu": 120}}, "less than or equal to 100"),
        ({"targetThresholds": {"cpu": -1}}, "greater than or equal to 0"),
        ({"thresholds": {"cpus": 20}}, "'cpus' is not a resource"),
        ({"thresholds": {"cpu": 20, "memory": 20}}, "must name the same resources; only one has memory"),
        ({"thresholds": {"cpu": 60}}, "the thresholds of cpu are greater than their targetThresholds"),
        ({"evictableNamespaces": {"include": ["a"]}}, "only exclude can be given"),
        ({"evictionLimits": {"node": -1}}, "greater than or equal to 0"),
        ({"metricsUtilization": {}}, "give source"),
        ({"metricsUtilization": {"source": "prometheus"}}, "Input should be '', 'KubernetesMetrics', 'Prometheus' or"),
        ({"metricsUtilization": {"source": "KubernetesMetrics", "metricsServer": True}}, "not both"),
        ({"metricsUtilization": {"source": "KubernetesMetrics", "prometheus": {}}}, "goes with the source Prometheus"),
        ({"metricsUtilization": {"source": "Prometheus"}}, "needs prometheus.query"),
        ({"metricsUtilization": {"source": "Prometheus", "prometheus": {"query": "x"}}}, "name MetricResource and"),
    ],
)
def test_bad_arguments_are_told(args, message):
    """Each rule of the descheduler's validation, and those that it only notices later."""
    whole = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}, **args}

    with pytest.raises(ValueError, match=message):
        LowNodeUtilizationArgs.model_validate(whole)


def test_good_arguments():
    """Equal thresholds pass, crossed ones with deviation, fractions and null."""
    equal = {"thresholds": {"cpu": 20.5}, "targetThresholds": {"cpu": 20.5}, "evictionLimits": None}
    crossed = {"thresholds": {"cpu": 60}, "targetThresholds": {"cpu": 5}, "useDeviationThresholds": True}

    assert LowNodeUtilizationArgs.model_validate(equal).thresholds == {"cpu": 20.5}
    assert LowNodeUtilizationArgs.model_validate(crossed).use_deviation_thresholds
