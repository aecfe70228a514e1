"""LowNodeUtilization with `selection: relief` and thresholds on the number of pods: few moves even them out."""

from collections import Counter

import pytest

from rebalancer.eviction.steering import Steer
from rebalancer.report.words import text
from tests.make import decide, refused
from tests.measured import RELIEF, cluster, low, low_anywhere, node, pod

SEED = {"n1": 21, "n2": 17, "n3": 25}
BY_COUNT = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {"plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "PodCapacityOfNode"}]}}},
    ],
}


def crowd(counts, usage=1.0, slots=110, fields=None, **scene):
    """So many pods on each node, the first of each the oldest; each uses as much."""
    nodes = [node(name, pods=slots) for name in counts]
    pods = [
        pod(f"{name}-{number}", on=name, age=100_000 - number, **(fields or {}))
        for name, count in counts.items()
        for number in range(count)
    ]
    return cluster(nodes, pods, {each.name: usage for each in pods}, **scene)


def counts_after(before, ledger):
    counts = Counter(before)
    for each in ledger.evictions:
        counts[each.pod.node] -= 1
        counts[each.destination.nodes[0]] += 1
    return dict(counts)


def test_just_as_many_pods_go_as_are_too_many():
    """44 of 110 are 40 %: of 60 pods 16 go, though one is less than a tenth of what is above target."""
    before = {"n1": 60, "n2": 10, "n3": 10}
    ledger = decide(crowd(before), low({"pods": 20}, {"pods": 40}))

    assert counts_after(before, ledger) == {"n1": 44, "n2": 18, "n3": 18}
    assert text(ledger.evictions[0].because) == (
        "n1 at pods 54.5 % > 40 %: 14.5 points over; relieves 0.9 points; "
        "likely lands on n2 (12 of 16, pods 9.1 % -> 10 %), else n3"
    )


AROUND_THE_MEAN = low({"pods": 2}, {"pods": 2}, useDeviationThresholds=True)


@pytest.mark.parametrize(
    ("scheduler", "expected"),
    [(None, {"n1": 22, "n2": 17, "n3": 24}), (BY_COUNT, {"n1": 21, "n2": 19, "n3": 23})],
    ids=["default", "PodCapacityOfNode"],
)
def test_a_scheduler_that_counts_pods_puts_them_where_few_are(scheduler, expected):
    """The node with few pods has little left by requests: the default scheduler takes another one."""
    pods = [
        pod(f"{name}-{number}", on=name, age=100_000 - number, cpu="500m" if name == "n2" else "100m")
        for name, count in SEED.items()
        for number in range(count)
    ]
    on = cluster(
        [node(name) for name in SEED],
        pods,
        {each.name: 1 for each in pods},
        snapshot={"scheduler_configuration": scheduler},
    )

    assert counts_after(SEED, decide(on, AROUND_THE_MEAN)) == expected


def test_a_pod_that_uses_nothing_takes_a_place():
    """Where the number of pods counts, it helps as well as any other; where it does not, it stays."""
    before = {"n1": 60, "n2": 10}

    assert len(decide(crowd(before, usage=0), low_anywhere({"pods": 20}, {"pods": 40})).evictions) == 16
    idle = crowd({"n1": 2, "n2": 0}, usage=0, rest={"n1": 60})
    assert set(refused(decide(idle, low_anywhere(20, 50))).values()) == {"NoUsage"}


def test_requests_may_stand_in_for_usage():
    """As with `whenMissing: requests` where nothing was measured at all; pods without requests go too."""
    before = {"n1": 60, "n2": 10}
    on = crowd(before, usage=0, fields={"cpu": None}, measured={"missing": {}, "warnings": ("requests stand in",)})

    assert len(decide(on, low({"pods": 20}, {"pods": 40})).evictions) == 16


def test_with_steering_counts_are_evened_too():
    """A move of one pod brings less than the least gain of 1.5 points, and yet it is a move for a node outside."""
    before = {"n1": 40, "n2": 10, "n3": 10}
    steer = Steer(1.5, ("kube-rebalancer/avoid", "kube-rebalancer/avoid-more"))
    ledger = decide(
        crowd(before), low({"pods": 20}, {"pods": 30}, metricsUtilization={**RELIEF, "rest": "1m"}), steer=steer
    )

    assert counts_after(before, ledger)["n1"] <= 33
