"""The snapshot of a cycle, and what its objects say of themselves."""

from datetime import timedelta

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Condition, Owner
from rebalancer.cluster.taints import Taint, Toleration, untolerated
from tests.make import NOW, cluster, node, pod, selector, snapshot


def test_pods_come_by_age_then_namespace_and_name() -> None:
    pods = [pod("b", age=1), pod("a", age=1), pod("a", namespace="apps", age=1), pod("z", age=9)]

    on = cluster([node("n1")], pods)

    assert [str(each) for each in on.pods_on(on.nodes[0])] == ["default/z", "apps/a", "default/a", "default/b"]


def test_nodes_are_the_ready_ones_that_the_policy_selects_by_name() -> None:
    """Nodes for nodeFit are all that are ready; pods are found on selected nodes only."""
    nodes = [node("n3"), node("n2", ready=False), node("n1", labels={"pool": "x"}), node("n0", unschedulable=True)]
    pods = [pod("a", node="n1"), pod("b", node="n3"), pod("c", node="n2"), pod("d", node="")]

    on = Cluster(snapshot(nodes, pods), selector(pool="x"))

    assert [each.name for each in on.nodes] == ["n1"]
    assert [each.name for each in on.ready_nodes] == ["n0", "n1", "n3"]
    assert [each.name for each in on.pods()] == ["a"]
    assert on.node("n2") is not None
    assert on.node("n9") is None


def test_active_pods_have_neither_succeeded_nor_failed() -> None:
    """Pending, Unknown and pods without a phase take room."""
    phases = ("Running", "Pending", "Unknown", "", "Succeeded", "Failed")
    on = cluster([node("n1")], [pod(each or "none", phase=each) for each in phases])

    assert {each.phase for each in on.active_pods_on(on.nodes[0])} == {"Running", "Pending", "Unknown", ""}
    assert len(on.pods_on(on.nodes[0])) == 6


def test_siblings_count_in_every_phase_and_everywhere() -> None:
    """As the descheduler counts replicas."""
    pods = [pod("a"), pod("b", phase="Failed"), pod("c", node=""), pod("d", terminating=True), pod("e", owners="other")]
    on = cluster([node("n1")], pods)

    assert on.siblings(pods[0].owners[0].uid) == 4
    assert on.siblings("nobody") == 0


PLAIN, CONTROLLER = Owner("Widget", "w", "1"), Owner("Job", "j", "2", controller=True)


def test_the_controller_looks_after_a_pod_else_its_first_owner() -> None:
    assert pod("a", owners=(PLAIN, CONTROLLER)).controller == CONTROLLER
    assert pod("a", owners=(PLAIN,)).controller == PLAIN
    assert pod("a", owners=None).controller is None


def test_a_pod_that_names_an_owner_twice_is_one_of_its_pods() -> None:
    """Else minReplicas would let one pod more go; the API server leaves out equal references only."""
    pods = [pod("a", owners=(PLAIN, Owner("Gadget", "g", PLAIN.uid))), pod("b", owners=(PLAIN,))]
    on = cluster([node("n1")], pods)

    before = on.siblings(PLAIN.uid)
    on.evicted(pods[0])

    assert (before, on.siblings(PLAIN.uid)) == (2, 1)


def test_a_pod_was_bound_when_the_scheduler_said_so() -> None:
    """Else when the kubelet saw it, else when it was created; a condition that is not true says nothing."""
    later = NOW - timedelta(seconds=5)
    waited = Condition("PodScheduled", "False", changed=NOW)
    bound = Condition("PodScheduled", "True", changed=later)
    untimed = Condition("PodScheduled", "True")

    assert pod("a", age=60, conditions=(waited, bound)).bound == later
    assert pod("a", age=60, started=later, conditions=(untimed,)).bound == later
    assert pod("a", age=60, started=None, conditions=(waited,)).bound == NOW - timedelta(seconds=60)


def test_every_hard_taint_needs_a_toleration_and_soft_ones_none() -> None:
    soft, hard, harder = Taint("a", "", "PreferNoSchedule"), Taint("b", "", "NoSchedule"), Taint("c", "", "NoExecute")

    assert untolerated([], [soft, hard, harder]) == hard
    assert untolerated([Toleration("b", "Exists")], [soft, hard, harder]) == harder
    assert untolerated([Toleration("", "Exists")], [soft, hard, harder]) is None
    assert untolerated([], [soft, hard], counts=lambda _: True) == soft
