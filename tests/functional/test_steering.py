"""A run that steers asks for its permission first, and clears up what another has left; what stays is said."""

from datetime import timedelta

import pytest

from rebalancer.kube.marks import Mark
from tests.functional.objects import OLD, node, policy
from tests.functional.test_holding import COMPACT
from tests.functional.test_unmark import KEYS, NOW, RECORD, SPOT, marked

STEERED = policy(OLD, maxNoOfPodsToEvictTotal=1, steering={})


@pytest.mark.parametrize("loop", [(), ("--descheduling-interval", "1h")])
@pytest.mark.parametrize(
    ("wanted", "verb", "resource"),
    [
        (STEERED, "patch", "nodes"),
        (STEERED, "get", "nodes"),
        (policy(COMPACT, maxNoOfPodsToEvictTotal=5, hold="15m"), "patch", "nodes"),
        (policy(OLD, maxNoOfPodsToEvictTotal=1, trust={"restart": True}), "patch", "deployments"),
    ],
)
def test_without_the_permission_nothing_is_done(two, rebalancer, wanted, verb, resource, loop):
    """The review comes before anything else, and the message has the rule to add; it does not come by itself."""
    two.forbid(verb, resource)

    outcome = rebalancer.run(two, wanted, *loop)

    assert outcome.exit_code == 3
    assert f"no permission to {verb} {resource}" in outcome.stderr
    assert "verbs: [get, patch]" in outcome.stderr
    assert two.evicted == []
    assert {request.path.rpartition("/")[2] for request in two.requests} == {"selfsubjectaccessreviews"}


@pytest.mark.parametrize("lease", [True, False], ids=["with the Lease", "without it"])
def test_marks_of_runs_that_are_over_are_taken_off_first(two, rebalancer, lease):
    """With the Lease no other run is at work, so all go; without it those whose runs are not on record or over.

    A dry run writes nothing and asks for nothing.
    """
    at_work = Mark("run-2", KEYS, NOW + timedelta(hours=1)).text()
    two.leases.note(RECORD, f"[{Mark('run-1', KEYS, NOW - timedelta(hours=1)).text()},{at_work}]")
    two.add(marked("n3", "run-1", NOW - timedelta(hours=1)))
    two.add(marked("n4", "run-2", NOW + timedelta(hours=1)))
    arguments = [each for each in rebalancer.arguments(two, STEERED) if not (lease and each == "--no-lease")]

    assert rebalancer(*arguments, "--dry-run").exit_code == 0
    assert {request.method for request in two.requests} == {"GET"}
    outcome = rebalancer(*arguments)

    assert outcome.exit_code == 0, outcome.stderr
    assert two.node("n3")["spec"]["taints"] == [SPOT]
    left = [each for each in two.node("n4")["spec"].get("taints", []) if each["key"] in KEYS]
    assert bool(left) is not lease
    record = two.leases.held["kube-system", "rebalancer"]["metadata"]["annotations"].get(RECORD, "")
    assert "run-2" in record  # it may still write, however late
    assert ("run-1" in record) is not lease
    order = [request.method for request in two.requests if request.method == "PATCH" or "eviction" in request.path]
    assert order == ["PATCH"] * (2 if lease else 1) + ["POST"]


def test_marks_that_cannot_be_taken_off_stop_their_node_and_not_the_run(two, rebalancer):
    """It says so, and sends nothing there; the first run afterwards takes them off."""
    two.add(marked("n3", "run-1", NOW - timedelta(hours=1)))
    two.fail("PATCH", "*/n3", status=403, message='admission webhook "w" denied the request: no', times=1)

    refused = rebalancer.run(two, STEERED)
    allowed = rebalancer.run(two, STEERED)

    assert (refused.exit_code, refused.evicted()) == (0, ["default/a"])
    (warning,) = [each for each in refused.report["warnings"] if "n3" in each]
    assert "nodes keep soft taints of another run, and receive no pods: node n3:" in warning
    assert not any("n3" in each for each in allowed.report["warnings"])
    assert two.node("n3")["spec"]["taints"] == [SPOT]


def test_what_a_kubelet_writes_into_its_annotation_stops_no_run_and_removes_no_taint(two, rebalancer):
    """Without the Lease too: no record knows the run that it names, whenever that is said to end."""
    forged = ("node.example.com/gpu", "dedicated")
    two.add(marked("n3", "forged", NOW + timedelta(days=3650), forged))
    before = two.node("n3")

    outcome = rebalancer.run(two, STEERED)

    assert outcome.evicted() == ["default/a"]
    assert two.node("n3") == before
    (warning,) = [each for each in outcome.report["warnings"] if "n3" in each]
    assert "node.example.com/gpu=forged:PreferNoSchedule" in warning


def test_a_run_that_does_not_steer_takes_them_off_too(two, rebalancer):
    """Or says that they stay, and goes on; also those of the keys of a policy that is gone, by the record of runs."""
    keys = ("example.com/steer", "example.com/steer-more")
    two.leases.note(RECORD, f"[{Mark('run-1', keys, NOW).text()}]")
    two.add(marked("n3", "run-1", NOW - timedelta(hours=1), keys))
    two.fail("PATCH", "*", status=403, message='admission webhook "w" denied the request: no', times=1)
    one = policy(OLD, maxNoOfPodsToEvictTotal=1)

    refused = rebalancer.run(two, one)
    allowed = rebalancer.run(two, one)

    assert (refused.exit_code, allowed.exit_code) == (0, 0)
    assert any("`rebalancer unmark` takes them off" in each for each in refused.report["warnings"])
    assert not any("taint" in each for each in allowed.report["warnings"])
    assert two.node("n3")["spec"]["taints"] == [SPOT]


def test_nodes_without_a_trace_are_not_listed_again(two, rebalancer):
    """A run that does not steer pays nothing for it."""
    two.add(node("n3", taints=[SPOT]))

    rebalancer.run(two, policy(OLD, maxNoOfPodsToEvictTotal=1))

    assert len(two.sent("GET", "/api/v1/nodes")) == 1
