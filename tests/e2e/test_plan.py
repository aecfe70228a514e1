"""A plan is made, the cluster changes, and the plan is applied: by the audit log only planned pods are evicted."""

import json
from pathlib import Path

from tests.e2e.acts import uids
from tests.e2e.api import Object
from tests.e2e.builders import deployment, node, pdb
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program, policy


def test_after_a_churn_only_planned_pods_go(
    controlplane: ControlPlane, namespace: Namespace, program: Program, tmp_path: Path
) -> None:
    """Two planned pods are gone by then, and new ones would be picked too; applied again, nothing more goes."""
    namespace.create(node("a"), node("b"))
    namespace.create(deployment("free", replicas=5), deployment("web", replicas=4), pdb("web", min_available=2))
    namespace.wait_ready(5, "free")
    namespace.wait_ready(4, "web")
    namespace.wait_budget("web", allowed=2)
    within: Object = {"namespaces": {"include": [namespace.name]}}
    tidy = policy({"PodLifeTime": {"states": ["Running"], **within}})
    plan, path = program.plan(tidy), tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    planned = {each["uid"]: each["name"] for each in plan["moves"]}
    assert len(planned) == 7
    gone = [each["name"] for each in plan["moves"] if each["owner"]["name"].startswith("free")][:2]
    for name in gone:
        controlplane.api.delete("Pod", name, namespace.name)
    namespace.create(deployment("late", replicas=3))
    namespace.wait_ready(3, "late")
    namespace.wait_ready(5, "free")
    before, start = uids(namespace.pods()), controlplane.audit_offset()

    outcome = program.apply(path, tidy)

    assert outcome.exit_code == 0, outcome.stderr
    evictions = [each for each in controlplane.requests_since(start) if each.subresource == "eviction"]
    assert {each.name for each in evictions} == set(planned.values()) - set(gone)
    assert {each.status for each in evictions} == {201}
    assert before - uids(namespace.pods()) <= planned.keys()
    assert sorted(each["name"] for each in outcome.report["plan"]["skipped"]) == sorted(gone)
    again = program.apply(path, tidy)
    assert (again.exit_code, again.evicted(), len(again.report["plan"]["skipped"])) == (0, [], 7)
