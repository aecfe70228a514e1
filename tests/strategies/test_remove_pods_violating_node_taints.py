"""RemovePodsViolatingNodeTaints: which pods do not tolerate their node (strategies.md 8)."""

from rebalancer.engine.limits import Limits
from rebalancer.report.words import text
from strategies.remove_pods_violating_node_taints import (
    RemovePodsViolatingNodeTaints,
    RemovePodsViolatingNodeTaintsArgs,
)
from tests.make import cluster, decide, evicted, node, pod


def run(taints, pods, args=None, other=None, **settings):
    """n1 has these taints, and n2 is another node."""
    strategy = RemovePodsViolatingNodeTaints(RemovePodsViolatingNodeTaintsArgs.model_validate(args or {}))
    return decide(cluster([node("n1", taints=taints), other or node("n2")], pods), strategy, **settings)


def test_one_taint_that_is_not_tolerated_is_enough():
    ledger = run(["k:NoSchedule", "l=w:NoSchedule"], [pod("a", tolerations=["k"])])

    assert text(ledger.evictions[0].because) == "does not tolerate taint l=w:NoSchedule of n1"


def test_the_oldest_go_first_and_limits_hold():
    pods = [pod("young", age=1), pod("old", age=9), pod("elsewhere", node="n2")]
    other = node("n2", taints=["k:NoSchedule"])

    assert evicted(run(["k:NoSchedule"], pods, other=other)) == ["old", "young", "elsewhere"]
    assert evicted(run(["k:NoSchedule"], pods, other=other, limits=Limits(per_node=1))) == ["old", "elsewhere"]
    assert evicted(run(["k:NoSchedule"], pods, other=other, limits=Limits(total=1))) == ["old"]
