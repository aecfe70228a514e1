"""PodLifeTime: which pods have lived too long, in which order, and why (strategies.md 10)."""

import pytest

from rebalancer.cluster.pod import Condition, ContainerStatus
from rebalancer.engine.limits import Limits
from rebalancer.report.words import text
from strategies.pod_life_time import PodLifeTime, PodLifeTimeArgs
from tests.make import cluster, decide, evicted, node, pod, refused


def run(pods, args, **settings):
    on = cluster([node("n1"), node("n2")], pods)
    return decide(on, PodLifeTime(PodLifeTimeArgs.model_validate(args)), **settings)


@pytest.mark.parametrize(
    ("age", "limit", "goes"),
    [
        pytest.param(600.9, 600, False, id="fractions of a second do not count"),
        pytest.param(601, 600, True, id="a second older"),
        pytest.param(0.5, 0, False, id="zero asks for a whole second"),
        pytest.param(1, 0, True, id="which has passed"),
        pytest.param(-5, 0, False, id="from the future"),
    ],
)
def test_age_is_compared_in_whole_seconds(age, limit, goes):
    ledger = run([pod("a", age=age)], {"maxPodLifeTimeSeconds": limit})

    figures = [dict(entry.because.details) for entry in ledger.evictions]
    assert figures == ([{"age_seconds": int(age), "maximum_seconds": limit}] if goes else [])


def test_a_pod_without_owners_is_of_no_kind():
    settings = {"evictor": {"evictFailedBarePods": True}}
    bare = [pod("a", phase="Failed", owners=None)]

    assert evicted(run(bare, {"states": ["Failed"], "ownerKinds": {"exclude": ["Job"]}}, **settings)) == ["a"]
    assert evicted(run(bare, {"states": ["Failed"], "ownerKinds": {"include": ["Job"]}}, **settings)) == []


def test_the_oldest_of_the_whole_cluster_goes_first():
    pods = [pod("young", age=10), pod("oldest", node="n2", age=99), pod("old", age=50)]

    assert evicted(run(pods, {"maxPodLifeTimeSeconds": 5})) == ["oldest", "old", "young"]
    assert evicted(run(pods, {"maxPodLifeTimeSeconds": 5}, limits=Limits(total=1))) == ["oldest"]
    assert evicted(run(pods, {"maxPodLifeTimeSeconds": 5}, limits=Limits(per_node=1))) == ["oldest", "old"]


def test_protected_pods_are_refused_with_the_cause_and_others_are_not_mentioned():
    ledger = run([pod("a", local_storage=True), pod("b", age=1, local_storage=True)], {"maxPodLifeTimeSeconds": 5})

    assert refused(ledger) == {"a": "PodsWithLocalStorage"}
    assert text(ledger.refusals[0].because) == "age 1h > 5s"


def test_fit_is_judged_before_the_first_eviction():
    """The room that the first pod leaves does not count for the second."""
    nodes = [node("n1", cpu="2"), node("n2", cpu="1")]
    pods = [pod("a", cpu="1", age=50), pod("b", node="n2", cpu="1", age=99)]
    strategy = PodLifeTime(PodLifeTimeArgs.model_validate({"maxPodLifeTimeSeconds": 5}))

    ledger = decide(cluster(nodes, pods), strategy, evictor={"nodeFit": True})

    assert evicted(ledger) == ["b"]
    assert refused(ledger) == {"a": "NodeFit"}


def test_a_reason_names_everything_that_matched():
    args = {
        "maxPodLifeTimeSeconds": 5,
        "states": ["Running", "Error"],
        "exitCodes": [1],
        "conditions": [{"type": "Ready"}],
    }
    containers = (ContainerStatus(terminated="Error", exit_code=1),)
    ledger = run([pod("a", containers=containers, conditions=(Condition("Ready", "False", "X"),))], args)

    said = "age 1h > 5s, state Running, state Error, exit code 1, condition Ready=False X"
    assert [text(entry.because) for entry in ledger.evictions] == [said]


def test_a_condition_may_ask_for_a_time_of_zero():
    assert PodLifeTimeArgs.model_validate({"conditions": [{"minTimeSinceLastTransitionSeconds": 0}]})
