"""What steering takes beside other runs: the rules of the chart suffice under its admission policy."""

import os
from pathlib import Path

import pytest

from rebalancer.kube.marks import ANNOTATION
from tests.chart.helm import ADMISSION, needed, template
from tests.e2e.access import HOME, NAME, account
from tests.e2e.api import Api
from tests.e2e.binaries import found
from tests.e2e.builders import deployment, node
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program
from tests.e2e.test_admission_policy import probed
from tests.e2e.test_steering_faults import PROBE, QUICK, Stage
from tests.e2e.waiting import wait_for

pytestmark = needed

RENDERED = template({"steering": {"enabled": True}}, *ADMISSION) if found("helm") else []


@pytest.fixture
def stage(controlplane: ControlPlane, namespace: Namespace, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Pods on two nodes, one of which is to move to a third node; that one comes last, so that it has none of them."""
    monkeypatch.setenv("PYTHONPATH", f"{PROBE}{os.pathsep}{Path(__file__).parents[2]}")
    namespace.create(node("a"), node("b"), deployment("web", replicas=4))
    namespace.wait_ready(4)
    namespace.create(node("c"))
    return Stage(controlplane, namespace, Program(controlplane.kubeconfig))


def test_the_rules_of_the_chart_suffice(controlplane: ControlPlane, stage: Stage) -> None:
    """Nodes are marked and unmarked by the account, and nothing that it asks for is forbidden."""
    with account(controlplane, stage.namespace, RENDERED) as kubeconfig:
        wait_for(lambda: not probed(Api(kubeconfig), "a"), "the admission policy in force")
        offset = controlplane.audit_offset()

        outcome = Program(kubeconfig).run(stage.policy(waves=1), *QUICK)

    requests = controlplane.requests_since(offset, user=f"system:serviceaccount:{HOME}:{NAME}")
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.evicted(), outcome.report
    assert not [each for each in requests if each.status in {401, 403}]
    assert {"get", "patch"} <= {each.verb for each in requests if each.resource == "nodes"}
    assert stage.marked() == []
    assert not any(ANNOTATION in each["metadata"].get("annotations", {}) for each in controlplane.api.list("Node"))
