"""RemoveFailedPods, RemovePodsHavingTooManyRestarts and RemovePodsViolatingNodeTaints: which pods go, and why.

They ask for pods node by node (strategies.md 8, 11, 12).
"""

import pytest

from rebalancer.cluster.pod import ContainerStatus
from rebalancer.engine.limits import Limits
from rebalancer.report.words import text
from strategies import RemoveFailedPods, RemovePodsHavingTooManyRestarts, RemovePodsViolatingNodeTaints
from tests.make import cluster, decide, evicted, node, pod

NODES = (node("n1"), node("n2"))


def run(kind, pods, args=None, nodes=NODES, **settings):
    return decide(cluster(nodes, pods), kind(kind.Args.model_validate(args or {})), **settings)


def failed(name="a", **fields):
    return pod(name, **{"phase": "Failed", "age": 7200, **fields})


@pytest.mark.parametrize(
    ("args", "age", "expected"),
    [
        pytest.param({}, 3600, True, id="an hour unless given"),
        pytest.param({}, 3599.9, False, id="in whole seconds"),
        pytest.param({"minPodLifetimeSeconds": None}, 3599, False, id="null is not given"),
        pytest.param({"minPodLifetimeSeconds": 0}, 0, True, id="zero is given"),
        pytest.param({"minPodLifetimeSeconds": 60}, 60, True, id="just old enough"),
        pytest.param({"minPodLifetimeSeconds": 60}, -7200, False, id="from the future"),
    ],
)
def test_young_failed_pods_are_left_for_people_to_look_at(args, age, expected):
    assert bool(evicted(run(RemoveFailedPods, [failed(age=age)], args))) is expected


def test_the_reason_tells_what_happened_and_how_old_the_pod_is():
    ledger = run(RemoveFailedPods, [failed(reason="Evicted", containers=(ContainerStatus(terminated="Error"),))])

    assert text(ledger.evictions[0].because) == "failed, Error, Evicted, age 2h >= 1h"


def test_failed_pods_go_node_by_node_and_the_oldest_first():
    """A fixed order where the descheduler has none."""
    pods = [failed("d", node="n2", age=9999), failed("c", age=7200), failed("b", age=8000), failed("a", age=7200)]

    assert evicted(run(RemoveFailedPods, pods)) == ["b", "a", "c", "d"]
    assert evicted(run(RemoveFailedPods, pods, limits=Limits(per_node=1))) == ["b", "d"]


def restarts(*counts):
    return {"containers": tuple(ContainerStatus(restarts=each) for each in counts)}


def test_the_most_restarts_go_first_on_each_node():
    """Ties by age; a node's limit does not keep the next node from losing pods."""
    pods = [
        pod("few", **restarts(5)),
        pod("many", **restarts(50)),
        pod("tied", age=9999, **restarts(5)),
        pod("elsewhere", node="n2", **restarts(99)),
    ]

    args = {"podRestartThreshold": 5}
    assert evicted(run(RemovePodsHavingTooManyRestarts, pods, args)) == ["many", "tied", "few", "elsewhere"]
    assert evicted(run(RemovePodsHavingTooManyRestarts, pods, args, limits=Limits(per_node=1))) == ["many", "elsewhere"]


def test_the_reason_has_the_number_of_restarts():
    ledger = run(RemovePodsHavingTooManyRestarts, [pod("a", **restarts(3, 4))], {"podRestartThreshold": 5})

    assert text(ledger.evictions[0].because) == "7 restarts >= 5"


def test_one_taint_that_is_not_tolerated_is_enough():
    tainted = node("n1", taints=["k:NoSchedule", "l=w:NoSchedule"])
    ledger = run(RemovePodsViolatingNodeTaints, [pod("a", tolerations=["k"])], nodes=[tainted, node("n2")])

    assert text(ledger.evictions[0].because) == "does not tolerate taint l=w:NoSchedule of n1"


@pytest.mark.parametrize(
    ("limits", "expected"),
    [({}, ["old", "young", "elsewhere"]), ({"per_node": 1}, ["old", "elsewhere"]), ({"total": 1}, ["old"])],
)
def test_of_pods_that_do_not_tolerate_a_taint_the_oldest_go_first_and_limits_hold(limits, expected):
    nodes = [node(name, taints=["k:NoSchedule"]) for name in ("n1", "n2")]
    pods = [pod("young", age=1), pod("old", age=9), pod("elsewhere", node="n2")]

    assert evicted(run(RemovePodsViolatingNodeTaints, pods, nodes=nodes, limits=Limits(**limits))) == expected
