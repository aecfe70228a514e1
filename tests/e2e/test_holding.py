"""A node that was emptied stays empty beside the real scheduler, until its time is over."""

from datetime import UTC, datetime, timedelta

from rebalancer.kube.marks import HoldMark
from rebalancer.policy.steering import HOLD_KEY
from tests.e2e.acts import by_node, cordon
from tests.e2e.api import Object
from tests.e2e.builders import node, replicaset
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program, everything_in, policy

COMPACT = {"HighNodeUtilization": {"thresholds": {"cpu": 40}, "selection": "compaction"}}
FILL = {"LowNodeUtilization": {"thresholds": {"cpu": 10}, "targetThresholds": {"cpu": 20}}}
LONG_AGO = "2020-01-01T00:00:00Z"
OURS = {"key": HOLD_KEY, "effect": "PreferNoSchedule"}


def place(controlplane: ControlPlane, namespace: Namespace, on: str, other: str, workload: Object, count: int) -> None:
    """Create a workload whose pods all come to one of two nodes."""
    cordon(controlplane.api, other)
    namespace.create(workload)
    found = namespace.wait_ready(count, workload["metadata"]["name"])
    assert by_node(found) == {on: count}
    cordon(controlplane.api, other, on=False)


def test_it_stays_empty_until_its_time_is_over(
    controlplane: ControlPlane, namespace: Namespace, program: Program
) -> None:
    """A new pod goes elsewhere, no run fills the node; the run after its expiry takes the taint off, none before."""
    api = controlplane.api
    namespace.create(node("a", cpu="10"), node("b", cpu="10"))
    place(controlplane, namespace, "a", "b", replicaset("lone", replicas=1, cpu="1"), 1)
    (lone,) = namespace.pods("lone")
    namespace.set_pod_status(lone["metadata"]["name"], {"startTime": LONG_AGO})  # or it would rest
    place(controlplane, namespace, "b", "a", replicaset("web", replicas=2, cpu="1"), 2)

    emptied = program.run(policy(COMPACT, steering={}), "--hold", "1h")
    namespace.create(replicaset("late", replicas=2, cpu="100m"))

    assert emptied.exit_code == 0, emptied.stderr
    assert [(each["name"], each["problem"]) for each in emptied.report["heldNodes"]] == [("a", None)]
    assert by_node(namespace.wait_ready(5)) == {"b": 5}
    assert api.read("Node", "a")["spec"]["taints"] == [OURS]
    filled = program.run(policy(FILL))
    assert (filled.evicted(), [each["name"] for each in filled.report["heldNodes"]]) == ([], ["a"])
    assert api.read("Node", "a")["spec"]["taints"] == [OURS]

    over = HoldMark("run-0", datetime.now(UTC) - timedelta(seconds=1)).text()
    api.patch("Node", "a", "", {"metadata": {"annotations": {HOLD_KEY: over}}})
    after = program.run(everything_in("nowhere"))

    assert after.exit_code == 0, after.stderr
    assert after.report["heldNodes"] == []
    found = api.read("Node", "a")
    assert "taints" not in found["spec"]
    assert HOLD_KEY not in found["metadata"].get("annotations", {})
    assert program.dry_run(policy(FILL)).evicted()
