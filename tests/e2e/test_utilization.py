"""LowNodeUtilization and HighNodeUtilization on requests, and where the scheduler puts what they evict."""

from tests.e2e.acts import by_node, cordon, uids
from tests.e2e.builders import node, pod, replicaset
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program, policy


def test_overutilized_node_sheds_load(controlplane: ControlPlane, namespace: Namespace, program: Program) -> None:
    """Of two half full nodes one has 4 pods of 10 % more: one of them moves, and then no node is above 80 %."""
    namespace.create(node("a", cpu="10"), node("b", cpu="10"))
    namespace.create(pod("filler-a", cpu="5", node="a"), pod("filler-b", cpu="5", node="b"))  # bare pods stay
    namespace.wait_ready(2)
    cordon(controlplane.api, "b")
    namespace.create(replicaset("web", replicas=4, cpu="1"))
    before = namespace.wait_ready(4, "web")
    assert by_node(before) == {"a": 4}
    cordon(controlplane.api, "b", on=False)

    args = {"thresholds": {"cpu": 70}, "targetThresholds": {"cpu": 80}}
    outcome = program.run(policy({"LowNodeUtilization": args}))

    assert outcome.exit_code == 0, outcome.stderr
    assert len(outcome.evicted_uids()) == 1
    assert set(outcome.evicted_uids()) <= uids(before)
    assert by_node(namespace.wait_ready(4, "web")) == {"a": 3, "b": 1}
    assert program.dry_run(policy({"LowNodeUtilization": args})).evicted() == []


def test_underutilized_node_is_emptied(controlplane: ControlPlane, namespace: Namespace, program: Program) -> None:
    """A node at 20 % loses all its pods to one at 50 %; a cordoned one, as an autoscaler leaves it, stays empty."""
    namespace.create(node("a", cpu="10"), node("b", cpu="10"))
    namespace.create(pod("filler", cpu="5", node="b"))
    namespace.wait_ready(1)
    cordon(controlplane.api, "b")
    namespace.create(replicaset("web", replicas=2, cpu="1"))
    before = namespace.wait_ready(2, "web")
    cordon(controlplane.api, "b", on=False)
    cordon(controlplane.api, "a")

    outcome = program.run(policy({"HighNodeUtilization": {"thresholds": {"cpu": 30}}}))

    assert outcome.exit_code == 0, outcome.stderr
    assert set(outcome.evicted_uids()) == uids(before)
    assert by_node(namespace.wait_ready(2, "web")) == {"b": 2}
