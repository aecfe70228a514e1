"""What steering takes beside other runs: the rules of the chart suffice under its admission policy; each is needed."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rebalancer.kube.marks import ANNOTATION
from tests.chart.helm import ADMISSION, every, needed, one, template
from tests.e2e.api import Api
from tests.e2e.binaries import found
from tests.e2e.builders import deployment, node
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program
from tests.e2e.test_admission_policy import ADMISSIONS, PLURALS, probed
from tests.e2e.test_permissions import Permission, in_force, narrowed
from tests.e2e.test_steering_faults import PROBE, QUICK, Stage
from tests.e2e.waiting import wait_for

pytestmark = needed

NAME, HOME = "rebalancer", "kube-system"
RENDERED = template({"steering": {"enabled": True}}, *ADMISSION) if found("helm") else []
WRITES = [Permission("get", "", "nodes"), Permission("patch", "", "nodes")]

#: Puts in place what the chart renders, without one of its permissions perhaps; returns the program with the account.
Granted = Callable[..., Program]


@pytest.fixture
def granted(controlplane: ControlPlane, namespace: Namespace) -> Iterator[Granted]:
    """The account, its roles, and the admission policy, as rendered but for one permission."""
    api = controlplane.api
    api.delete("Lease", NAME, HOME)

    def grant(without: Permission | None = None) -> Program:
        role = one(RENDERED, "ClusterRole")
        namespace.create(narrowed(role, without), one(RENDERED, "ClusterRoleBinding"))
        for each in every(RENDERED, "ServiceAccount", "Role", "RoleBinding"):
            api.create(each, HOME)
        for kind, plural in PLURALS.items():
            api.request("POST", f"{ADMISSIONS}/{plural}", one(RENDERED, kind))
        roles = [role, *every(RENDERED, "Role")]
        wait_for(lambda: all(in_force(api, each, without) for each in roles), f"the roles without {without} in force")
        account = controlplane.kubeconfig_for(NAME, api.token(NAME, HOME))
        if without is None:  # who may not write never meets the policy
            wait_for(lambda: not probed(Api(account), "a"), "the admission policy in force")
        return Program(account)

    yield grant
    for each in every(RENDERED, "ServiceAccount", "Role", "RoleBinding"):
        api.delete(each["kind"], each["metadata"]["name"], HOME)
    for kind, plural in PLURALS.items():
        api.request("DELETE", f"{ADMISSIONS}/{plural}/{one(RENDERED, kind)['metadata']['name']}")


@pytest.fixture
def stage(controlplane: ControlPlane, namespace: Namespace, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Pods on two nodes, one of which is to move to a third node; that one comes last, so that it has none of them."""
    monkeypatch.setenv("PYTHONPATH", f"{PROBE}{os.pathsep}{Path(__file__).parents[2]}")
    namespace.create(node("a"), node("b"), deployment("web", replicas=4))
    namespace.wait_ready(4)
    namespace.create(node("c"))
    return Stage(controlplane, namespace, Program(controlplane.kubeconfig))


def test_the_rules_of_the_chart_suffice(controlplane: ControlPlane, stage: Stage, granted: Granted) -> None:
    """Nodes are marked and unmarked by the account, and nothing that it asks for is forbidden."""
    program = granted()
    offset = controlplane.audit_offset()

    outcome = program.run(stage.policy(waves=1), *QUICK)

    requests = controlplane.requests_since(offset, user=f"system:serviceaccount:{HOME}:{NAME}")
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.evicted(), outcome.report
    assert not [each for each in requests if each.status in {401, 403}]
    assert {"get", "patch"} <= {each.verb for each in requests if each.resource == "nodes"}
    assert stage.marked() == []
    assert not any(ANNOTATION in each["metadata"].get("annotations", {}) for each in controlplane.api.list("Node"))


@pytest.mark.parametrize("missing", WRITES, ids=str)
def test_a_missing_permission_is_named(stage: Stage, granted: Granted, missing: Permission) -> None:
    """With the rule to add, before anything is evicted."""
    outcome = granted(missing).run(stage.policy(waves=1), *QUICK)

    assert (outcome.exit_code, outcome.report) == (3, {})
    assert f"no permission to {missing}" in outcome.stderr
    assert "verbs: [get, patch]" in outcome.stderr
    assert len(stage.namespace.wait_ready(4)) == 4
