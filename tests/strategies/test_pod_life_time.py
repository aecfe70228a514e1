"""PodLifeTime: which pods have lived too long, in which order, and why (strategies.md 10)."""

from datetime import timedelta

import pytest
from pydantic import ValidationError

from rebalancer.api import POD_STATES
from rebalancer.cluster.pod import Condition, ContainerStatus
from rebalancer.engine.limits import Limits
from rebalancer.report.words import text
from strategies.pod_life_time import PodLifeTime, PodLifeTimeArgs
from tests.make import NOW, cluster, decide, evicted, node, owner, pod, refused


def run(pods, args, **settings):
    on = cluster([node("n1"), node("n2")], pods)
    return decide(on, PodLifeTime(PodLifeTimeArgs.model_validate(args)), **settings)


def picks(args, **fields):
    """Whether a pod with these fields goes, and why."""
    ledger = run([pod("a", **fields)], args)
    return text(ledger.evictions[0].because) if ledger.evictions else ""


@pytest.mark.parametrize(
    ("age", "limit", "goes"),
    [
        pytest.param(605, 600, True, id="older"),
        pytest.param(595, 600, False, id="younger"),
        pytest.param(600.9, 600, False, id="fractions of a second do not count"),
        pytest.param(601, 600, True, id="a second older"),
        pytest.param(0.5, 0, False, id="zero asks for a whole second"),
        pytest.param(1, 0, True, id="which has passed"),
        pytest.param(-5, 0, False, id="from the future"),
    ],
)
def test_age_is_compared_in_whole_seconds(age, limit, goes):
    """Strictly older; the cause has both as numbers."""
    ledger = run([pod("a", age=age)], {"maxPodLifeTimeSeconds": limit})

    figures = [dict(entry.because.figures) for entry in ledger.evictions]
    assert figures == ([{"age_seconds": int(age), "maximum_seconds": limit}] if goes else [])


@pytest.mark.parametrize("phase", ["Running", "Pending", "Succeeded", "Failed", "Unknown"])
def test_with_an_age_alone_every_phase_goes(phase):
    """There is no default restriction."""
    assert picks({"maxPodLifeTimeSeconds": 60}, phase=phase)


def status(**fields):
    return (ContainerStatus(**fields),)


@pytest.mark.parametrize(
    ("args", "fields", "goes"),
    [
        pytest.param({"states": ["Running"]}, {}, True, id="the phase"),
        pytest.param({"states": ["Pending", "Running"]}, {}, True, id="one of several"),
        pytest.param({"states": ["Pending"]}, {}, False, id="another phase"),
        pytest.param({"states": ["NodeLost"]}, {"reason": "NodeLost"}, True, id="the status reason"),
        pytest.param(
            {"states": ["ErrImagePull"]}, {"containers": status(waiting="ErrImagePull")}, True, id="a waiting reason"
        ),
        pytest.param(
            {"states": ["OOMKilled"]}, {"containers": status(terminated="OOMKilled")}, True, id="a terminated one"
        ),
        pytest.param(
            {"states": ["NodeAffinity"]},
            {"containers": status(terminated="NodeAffinity")},
            True,
            id="words are not tied to a place",
        ),
        pytest.param(
            {"states": ["ContainerCreating"]},
            {"containers": status(waiting="ImagePullBackOff")},
            False,
            id="another reason",
        ),
        pytest.param(
            {"states": ["Error"]},
            {"init_containers": status(terminated="Error")},
            False,
            id="init containers only if asked",
        ),
        pytest.param(
            {"states": ["Error"], "includingInitContainers": True},
            {"init_containers": status(terminated="Error")},
            True,
            id="as here",
        ),
        pytest.param(
            {"states": ["Error"], "includingInitContainers": True},
            {"ephemeral_containers": status(terminated="Error")},
            False,
            id="ephemeral containers only if asked",
        ),
        pytest.param(
            {"states": ["Error"], "includingEphemeralContainers": True},
            {"ephemeral_containers": status(terminated="Error")},
            True,
            id="as here too",
        ),
        pytest.param({"exitCodes": [1, 2]}, {"containers": status(exit_code=2)}, True, id="an exit code"),
        pytest.param({"exitCodes": [0]}, {"containers": status(exit_code=0)}, True, id="zero is one"),
        pytest.param({"exitCodes": [0]}, {"containers": status()}, False, id="running is none"),
        pytest.param(
            {"exitCodes": [1]}, {"init_containers": status(exit_code=1)}, False, id="not of an init container"
        ),
        pytest.param(
            {"exitCodes": [1], "includingInitContainers": True},
            {"init_containers": status(exit_code=1)},
            True,
            id="unless asked",
        ),
        pytest.param(
            {"exitCodes": [1], "includingEphemeralContainers": True},
            {"ephemeral_containers": status(exit_code=1)},
            False,
            id="never of an ephemeral container",
        ),
        pytest.param({"states": ["Running"], "exitCodes": [1]}, {}, False, id="all criteria must hold"),
        pytest.param({"states": ["Running"], "maxPodLifeTimeSeconds": 7200}, {}, False, id="the age among them"),
    ],
)
def test_states_and_exit_codes(args, fields, goes):
    """Current states only; what is not given does not restrict."""
    assert bool(picks(args, **fields)) is goes


def condition(type_="Ready", status_="False", reason="X", ago=None):
    return Condition(type_, status_, reason, None if ago is None else NOW - timedelta(seconds=ago))


@pytest.mark.parametrize(
    ("wanted", "present", "goes"),
    [
        pytest.param({"type": "Ready"}, [condition()], True, id="the type alone"),
        pytest.param({"type": "Ready", "status": "True"}, [condition()], False, id="another status"),
        pytest.param({"reason": "X", "status": "False"}, [condition()], True, id="reason and status"),
        pytest.param({"reason": "Y"}, [condition()], False, id="another reason"),
        pytest.param({"type": "Ready"}, [], False, id="no conditions at all"),
        pytest.param(
            {"type": "A", "reason": "Y"},
            [condition("A", reason="X"), condition("B", reason="Y")],
            False,
            id="one condition must have all of it",
        ),
        pytest.param({"minTimeSinceLastTransitionSeconds": 300}, [condition(ago=300)], True, id="just long enough"),
        pytest.param({"minTimeSinceLastTransitionSeconds": 300}, [condition(ago=299.9)], False, id="too short"),
        pytest.param({"minTimeSinceLastTransitionSeconds": 0}, [condition(ago=-0.5)], False, id="from the future"),
        pytest.param({"minTimeSinceLastTransitionSeconds": 0}, [condition()], False, id="since an unknown time"),
        pytest.param(
            {"type": "A", "minTimeSinceLastTransitionSeconds": 300},
            [condition("A", ago=5), condition("B", ago=999)],
            False,
            id="the time of another condition does not count",
        ),
    ],
)
def test_conditions(wanted, present, goes):
    """Every field of an entry must match the same condition."""
    assert bool(picks({"conditions": [wanted]}, conditions=tuple(present))) is goes


def test_one_of_several_condition_entries_is_enough():
    """Entries are alternatives."""
    assert picks({"conditions": [{"type": "A"}, {"type": "Ready"}]}, conditions=(condition(),))


@pytest.mark.parametrize(
    ("kinds", "kind", "goes"),
    [
        ({"include": ["Job"]}, "Job", True),
        ({"include": ["Job"]}, "ReplicaSet", False),
        ({"exclude": ["Job"]}, "Job", False),
        ({"exclude": ["Job"]}, "ReplicaSet", True),
    ],
)
def test_owner_kinds(kinds, kind, goes):
    """Either some, or all but some."""
    assert bool(picks({"states": ["Running"], "ownerKinds": kinds}, owners=[owner("o", kind)])) is goes


def test_a_pod_without_owners_is_of_no_kind():
    """It is not included, and not excluded."""
    settings = {"evictor": {"evictFailedBarePods": True}}
    bare = [pod("a", phase="Failed", owners=None)]

    assert evicted(run(bare, {"states": ["Failed"], "ownerKinds": {"exclude": ["Job"]}}, **settings)) == ["a"]
    assert evicted(run(bare, {"states": ["Failed"], "ownerKinds": {"include": ["Job"]}}, **settings)) == []


def test_the_oldest_of_the_whole_cluster_goes_first():
    """Whatever its node; the limits take the rest."""
    pods = [pod("young", age=10), pod("oldest", node="n2", age=99), pod("old", age=50)]

    assert evicted(run(pods, {"maxPodLifeTimeSeconds": 5})) == ["oldest", "old", "young"]
    assert evicted(run(pods, {"maxPodLifeTimeSeconds": 5}, limits=Limits(total=1))) == ["oldest"]
    assert evicted(run(pods, {"maxPodLifeTimeSeconds": 5}, limits=Limits(per_node=1))) == ["oldest", "old"]


def test_namespaces_and_labels_narrow_the_choice():
    """Pods outside leave no trace."""
    pods = [pod("a", labels={"x": "y"}), pod("b"), pod("c", namespace="other", labels={"x": "y"})]
    args = {
        "maxPodLifeTimeSeconds": 5,
        "namespaces": {"exclude": ["other"]},
        "labelSelector": {"matchLabels": {"x": "y"}},
    }

    ledger = run(pods, args)

    assert (evicted(ledger), refused(ledger)) == (["a"], {})


def test_protected_pods_are_refused_with_the_cause_and_others_are_not_mentioned():
    """Only pods that match were asked for."""
    ledger = run([pod("a", local_storage=True), pod("b", age=1, local_storage=True)], {"maxPodLifeTimeSeconds": 5})

    assert refused(ledger) == {"a": "PodsWithLocalStorage"}
    assert text(ledger.refusals[0].because) == "age 1h > 5s"


def test_fit_is_judged_before_the_first_eviction():
    """The room that the first pod leaves does not count for the second."""
    nodes = [node("n1", cpu="2"), node("n2", cpu="1")]
    pods = [pod("a", cpu="1", age=99), pod("b", node="n2", cpu="1", age=50)]
    strategy = PodLifeTime(PodLifeTimeArgs.model_validate({"maxPodLifeTimeSeconds": 5}))

    ledger = decide(cluster(nodes, pods), strategy, evictor={"nodeFit": True})

    assert evicted(ledger) == ["b"]
    assert refused(ledger) == {"a": "NodeFit"}


def test_a_reason_names_everything_that_matched():
    """So that a person can check it."""
    args = {
        "maxPodLifeTimeSeconds": 5,
        "states": ["Running", "Error"],
        "exitCodes": [1],
        "conditions": [{"type": "Ready"}],
    }
    fields = {"containers": status(terminated="Error", exit_code=1), "conditions": (condition(),)}

    assert picks(args, **fields) == ("age 1h > 5s, state Running, state Error, exit code 1, condition Ready=False X")


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        pytest.param({}, "give maxPodLifeTimeSeconds, states", id="no criterion"),
        pytest.param({"ownerKinds": {"include": ["Job"]}}, "give maxPodLifeTimeSeconds", id="not a criterion"),
        pytest.param({"states": ["running"]}, "unknown states running", id="a state in the wrong case"),
        pytest.param({"conditions": [{}]}, "a condition needs", id="an empty condition"),
        pytest.param(
            {"conditions": [{"type": "", "reason": ""}]}, "a condition needs", id="a condition of empty texts"
        ),
        pytest.param({"maxPodLifeTimeSeconds": -1}, "greater than or equal to 0", id="a negative age"),
        pytest.param(
            {"states": ["Running"], "ownerKinds": {"include": ["a"], "exclude": ["b"]}},
            "not both",
            id="both owner lists",
        ),
        pytest.param(
            {"states": ["Running"], "namespaces": {"include": ["a"], "exclude": ["b"]}},
            "not both",
            id="both namespaces",
        ),
    ],
)
def test_bad_arguments_are_refused(args, problem):
    """In words."""
    with pytest.raises(ValidationError, match=problem):
        PodLifeTimeArgs.model_validate(args)


def test_a_condition_may_ask_for_a_time_of_zero():
    """Zero is given, not absent."""
    assert PodLifeTimeArgs.model_validate({"conditions": [{"minTimeSinceLastTransitionSeconds": 0}]})


def test_every_documented_state_is_known():
    """Five phases, and the reasons of pods and containers."""
    assert len(POD_STATES) == 5 + 4 + 8 + 7
