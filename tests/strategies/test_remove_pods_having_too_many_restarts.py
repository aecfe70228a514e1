"""RemovePodsHavingTooManyRestarts: which pods go, the most restarts first (strategies.md 11)."""

import pytest
from pydantic import ValidationError

from rebalancer.cluster.pod import ContainerStatus
from rebalancer.engine.limits import Limits
from rebalancer.report.words import text
from strategies.remove_pods_having_too_many_restarts import (
    RemovePodsHavingTooManyRestarts,
    RemovePodsHavingTooManyRestartsArgs,
)
from tests.make import cluster, decide, evicted, node, pod


def run(pods, args, **settings):
    strategy = RemovePodsHavingTooManyRestarts(RemovePodsHavingTooManyRestartsArgs.model_validate(args))
    return decide(cluster([node("n1"), node("n2")], pods), strategy, **settings)


def restarts(*counts, init=(), waiting=""):
    return {
        "containers": tuple(ContainerStatus(restarts=each, waiting=waiting) for each in counts),
        "init_containers": tuple(ContainerStatus(restarts=each) for each in init),
        "ephemeral_containers": (ContainerStatus(restarts=999),),
    }


@pytest.mark.parametrize(
    ("args", "counts", "goes"),
    [
        pytest.param({"podRestartThreshold": 5}, restarts(5), True, id="as many as the threshold"),
        pytest.param({"podRestartThreshold": 5}, restarts(4), False, id="one less"),
        pytest.param({"podRestartThreshold": 5}, restarts(2, 3), True, id="containers add up"),
        pytest.param({"podRestartThreshold": 5}, restarts(3, init=[2]), False, id="init containers do not"),
        pytest.param(
            {"podRestartThreshold": 5, "includingInitContainers": True}, restarts(3, init=[2]), True, id="unless asked"
        ),
        pytest.param({"podRestartThreshold": 5}, restarts(), False, id="ephemeral containers never do"),
    ],
)
def test_restarts_of_all_containers_are_added_up(args, counts, goes):
    """At least the threshold."""
    assert bool(evicted(run([pod("a", **counts)], args))) is goes


CRASHING = {"containers": (ContainerStatus(restarts=9, waiting="CrashLoopBackOff"),)}
CRASHING_INIT = {**restarts(9), "init_containers": (ContainerStatus(waiting="CrashLoopBackOff"),)}


@pytest.mark.parametrize(
    ("args", "fields", "goes"),
    [
        pytest.param({"states": ["Running"]}, restarts(9), True, id="the phase"),
        pytest.param({"states": ["Running"]}, {**restarts(9), "phase": "Pending"}, False, id="another phase"),
        pytest.param({"states": ["CrashLoopBackOff"]}, CRASHING, True, id="a waiting reason"),
        pytest.param({"states": ["CrashLoopBackOff"]}, restarts(9), False, id="no waiting reason"),
        pytest.param({"states": ["CrashLoopBackOff"]}, CRASHING_INIT, False, id="not of an init container"),
        pytest.param(
            {"states": ["CrashLoopBackOff"], "includingInitContainers": True}, CRASHING_INIT, True, id="unless asked"
        ),
        pytest.param(
            {"states": ["CrashLoopBackOff"]},
            {"containers": (ContainerStatus(restarts=9, terminated="CrashLoopBackOff"),)},
            False,
            id="a terminated reason does not count",
        ),
        pytest.param({}, {**restarts(9), "phase": "Failed"}, True, id="without states every phase goes"),
        pytest.param({"namespaces": {"exclude": ["default"]}}, restarts(9), False, id="another namespace"),
        pytest.param({"labelSelector": {"matchLabels": {"x": "y"}}}, restarts(9), False, id="other labels"),
    ],
)
def test_states_and_the_usual_filters(args, fields, goes):
    """A pod must be in one of the states."""
    assert bool(evicted(run([pod("a", **fields)], {"podRestartThreshold": 1, **args}))) is goes


def test_the_most_restarts_go_first_on_each_node():
    """Ties by age; a node's limit does not keep the next node from losing pods."""
    pods = [
        pod("few", **restarts(5)),
        pod("many", **restarts(50)),
        pod("tied", age=9999, **restarts(5)),
        pod("elsewhere", node="n2", **restarts(99)),
    ]

    assert evicted(run(pods, {"podRestartThreshold": 5})) == ["many", "tied", "few", "elsewhere"]
    assert evicted(run(pods, {"podRestartThreshold": 5}, limits=Limits(per_node=1))) == ["many", "elsewhere"]


def test_the_reason_has_the_numbers():
    """Restarts and threshold."""
    assert text(run([pod("a", **restarts(3, 4))], {"podRestartThreshold": 5}).evictions[0].because) == "7 restarts >= 5"


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        pytest.param({}, "at least 1", id="no threshold"),
        pytest.param({"podRestartThreshold": 0}, "at least 1", id="a threshold of zero"),
        pytest.param({"podRestartThreshold": 1, "states": ["Pending"]}, "unknown states Pending", id="another state"),
    ],
)
def test_bad_arguments_are_refused(args, problem):
    """In words."""
    with pytest.raises(ValidationError, match=problem):
        RemovePodsHavingTooManyRestartsArgs.model_validate(args)
