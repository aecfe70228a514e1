"""RemoveFailedPods: which failed pods go, and why (strategies.md 12)."""

import pytest

from rebalancer.cluster.pod import ContainerStatus
from rebalancer.engine.limits import Limits
from rebalancer.report.words import text
from strategies.remove_failed_pods import RemoveFailedPods, RemoveFailedPodsArgs
from tests.make import cluster, decide, evicted, node, pod


def run(pods, args=None, **settings):
    on = cluster([node("n1"), node("n2")], pods)
    return decide(on, RemoveFailedPods(RemoveFailedPodsArgs.model_validate(args or {})), **settings)


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
def test_young_pods_are_left_for_people_to_look_at(args, age, expected):
    assert bool(evicted(run([failed(age=age)], args))) is expected


def test_the_reason_tells_what_happened_and_how_old_the_pod_is():
    ledger = run([failed(reason="Evicted", containers=(ContainerStatus(terminated="Error"),))])

    assert text(ledger.evictions[0].because) == "failed, Error, Evicted, age 2h >= 1h"


def test_nodes_come_by_name_and_pods_by_age():
    """A fixed order where the descheduler has none."""
    pods = [failed("d", node="n2", age=9999), failed("c", age=7200), failed("b", age=8000), failed("a", age=7200)]

    assert evicted(run(pods)) == ["b", "a", "c", "d"]
    assert evicted(run(pods, limits=Limits(per_node=1))) == ["b", "d"]
