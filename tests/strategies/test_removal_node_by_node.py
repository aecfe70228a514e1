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


def restarts(*counts):
    return {"containers": tuple(ContainerStatus(restarts=each) for each in counts)}


def test_the_reason_has_the_number_of_restarts():
    ledger = run(RemovePodsHavingTooManyRestarts, [pod("a", **restarts(3, 4))], {"podRestartThreshold": 5})

    assert text(ledger.evictions[0].because) == "7 restarts >= 5"


def test_one_taint_that_is_not_tolerated_is_enough():
    tainted = node("n1", taints=["k:NoSchedule", "l=w:NoSchedule"])
    ledger = run(RemovePodsViolatingNodeTaints, [pod("a", tolerations=["k"])], nodes=[tainted, node("n2")])

    assert text(ledger.evictions[0].because) == "does not tolerate taint l=w:NoSchedule of n1"


OLDEST_FIRST = [pod("young", age=1), pod("old", age=9), pod("elsewhere", node="n2")]
#: Ties by age.
MOST_RESTARTS_FIRST = [
    *(pod("few", **restarts(5)), pod("many", **restarts(50)), pod("tied", age=9999, **restarts(5))),
    pod("elsewhere", node="n2", **restarts(99)),
]
#: Ties by name, where the descheduler has no order.
OLDEST_FAILED_FIRST = [failed("elsewhere", node="n2", age=9999), failed("c"), failed("b", age=8000), failed("a")]


@pytest.mark.parametrize(
    ("kind", "args", "pods", "order"),
    [
        (RemovePodsViolatingNodeTaints, {}, OLDEST_FIRST, ["old", "young"]),
        (RemovePodsHavingTooManyRestarts, {"podRestartThreshold": 5}, MOST_RESTARTS_FIRST, ["many", "tied", "few"]),
        (RemoveFailedPods, {}, OLDEST_FAILED_FIRST, ["b", "a", "c"]),
    ],
)
def test_pods_go_node_by_node_in_order(kind, args, pods, order):
    """A node's limit does not keep the next node from losing pods; the total does."""
    nodes = [node(name, taints=["k:NoSchedule"]) for name in ("n1", "n2")]

    def gone(**limits):
        return evicted(run(kind, pods, args, nodes, limits=Limits(**limits)))

    assert gone() == [*order, "elsewhere"]
    assert gone(per_node=1) == [order[0], "elsewhere"]
    assert gone(total=1) == order[:1]
