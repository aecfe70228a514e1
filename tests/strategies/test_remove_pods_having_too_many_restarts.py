"""RemovePodsHavingTooManyRestarts: which pods go, the most restarts first (strategies.md 11)."""

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

    assert evicted(run(pods, {"podRestartThreshold": 5})) == ["many", "tied", "few", "elsewhere"]
    assert evicted(run(pods, {"podRestartThreshold": 5}, limits=Limits(per_node=1))) == ["many", "elsewhere"]


def test_the_reason_has_the_numbers():
    assert text(run([pod("a", **restarts(3, 4))], {"podRestartThreshold": 5}).evictions[0].because) == "7 restarts >= 5"
