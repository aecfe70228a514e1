"""Contention as a resource of relief: full nodes on which nobody waits stay, others lose the pods that use most cpu."""

import pytest
from pydantic import ValidationError

from rebalancer.eviction.steering import Steer
from rebalancer.policy.usage import PrometheusUsage
from rebalancer.report.words import text
from strategies.low_node_utilization import LowNodeUtilizationArgs
from tests.make import decide, evicted, refused
from tests.measured import RELIEF, cluster, low, node, pod, points

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


QUERY = {"query": "waiting", "unit": "ratio"}
CPU = {"query": "used", "unit": "cores"}


@pytest.mark.parametrize(
    ("nodes", "pods", "message"),
    [
        ({"cpu": CPU, "contention": {**QUERY, "base": "capacity"}}, {}, "base: time"),
        ({"cpu": {**QUERY, "base": "time"}}, {}, "base: time"),
        ({"memory": CPU | {"unit": "bytes"}, "contention": {**QUERY, "base": "time"}}, {}, "goes with cpu"),
        (
            {"cpu": CPU, "contention": {**QUERY, "base": "time"}},
            {"cpu": CPU, "contention": {**QUERY, "base": "time"}},
            "needs no query about pods",
        ),
    ],
)
def test_queries_of_contention_say_what_they_mean(nodes, pods, message):
    with pytest.raises(ValidationError, match=message):
        PrometheusUsage.model_validate({"nodes": nodes, "pods": pods})


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "since it is measured"),
        ({"metricsUtilization": RELIEF, "useDeviationThresholds": True}, "no mean worth keeping to"),
    ],
)
def test_contention_goes_with_measured_usage_and_fixed_thresholds(more, message):
    with pytest.raises(ValidationError, match=message):
        LowNodeUtilizationArgs.model_validate({"thresholds": LOW, "targetThresholds": HIGH, **more})
