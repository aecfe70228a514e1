"""What pods say of themselves."""

from datetime import timedelta

from rebalancer.cluster.pod import Condition, Owner
from tests.make import NOW, pod

PLAIN, CONTROLLER = Owner("Widget", "w", "1"), Owner("Job", "j", "2", controller=True)


def test_the_controller_looks_after_a_pod_else_its_first_owner() -> None:
    assert pod("a", owners=(PLAIN, CONTROLLER)).controller == CONTROLLER
    assert pod("a", owners=(PLAIN,)).controller == PLAIN
    assert pod("a", owners=None).controller is None


def test_a_pod_was_bound_when_the_scheduler_said_so() -> None:
    """Else when the kubelet saw it, else when it was created; a condition that is not true says nothing."""
    later = NOW - timedelta(seconds=5)
    waited = Condition("PodScheduled", "False", changed=NOW)
    bound = Condition("PodScheduled", "True", changed=later)
    untimed = Condition("PodScheduled", "True")

    assert pod("a", age=60, conditions=(waited, bound)).bound == later
    assert pod("a", age=60, started=later, conditions=(untimed,)).bound == later
    assert pod("a", age=60, started=None, conditions=(waited,)).bound == NOW - timedelta(seconds=60)
