"""LowNodeUtilization with `selection: relief` and thresholds on pods, or on contention: few moves even them out."""

from collections import Counter

import pytest

from rebalancer.eviction.steering import Steer
from rebalancer.report.words import text
from tests.make import decide, evicted, refused
from tests.measured import RELIEF, cluster, low, node, pod, points

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
        "likely lands on n2 (10 of 16, pods 9.1 % -> 10 %), else n3"
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


LOW, HIGH = {"cpu": 30, "contention": 5}, {"cpu": 95, "contention": 10}
STEERS = pytest.mark.parametrize("steer", [None, Steer(1.5, ("a", "b"))])


def full(waiting, receiver=0):
    """n1 uses 80 % of its cpu, by pods of 40, 30 and 10 points; n2 is idle.  Given is for how much of the time tasks
    wait, in percent."""
    usage = {"big": 40, "middle": 30, "small": 10}
    pods = [pod(name, age=10_000 - number) for number, name in enumerate(usage)]
    used = {"n1": {**points(80), "contention": waiting * 100}, "n2": {**points(0), "contention": receiver * 100}}
    return cluster((node("n1"), node("n2")), pods, usage, measured={"nodes": used})


@STEERS
def test_a_node_on_which_tasks_wait_loses_what_uses_its_cpu(steer):
    """Of 24 % big has half and middle three eighths: without big it is 12 %, and without middle less than 10 %."""
    ledger = decide(full(waiting=24), low(LOW, HIGH), steer=steer)

    assert set(evicted(ledger)) >= {"big"}
    assert {each.destination.nodes for each in ledger.evictions} == {("n2",)}
    assert text(ledger.evictions[0].because).startswith(
        "n1 at contention 24 % > 10 %: 14 points over; relieves 12 points; likely lands on n2"
    )
    (weighed,) = [each for each in ledger.runs[0].observed.nodes if each.name == "n1"]
    assert weighed.after["contention"] < 10


def test_what_a_pod_brings_to_its_destination_is_no_contention():
    """It waits there for nothing; so the one that has 36 of 48 % may go, though 36 is above 10."""
    usage = {"hog": 60, "rest": 20}
    used = {"n1": {**points(80), "contention": 4800}, "n2": {**points(0), "contention": 0}}
    on = cluster((node("n1"), node("n2")), [pod(name) for name in usage], usage, measured={"nodes": used})
    ledger = decide(on, low(LOW, HIGH))

    assert "hog" in evicted(ledger)
    (weighed,) = [each for each in ledger.runs[0].observed.nodes if each.name == "n2"]
    assert weighed.after["contention"] == 0


@STEERS
def test_nodes_on_which_tasks_wait_receive_nothing(steer):
    ledger = decide(full(waiting=24, receiver=11), low(LOW, HIGH), steer=steer)

    assert evicted(ledger) == []
    assert set(refused(ledger).values()) <= {"NoDestination"}
