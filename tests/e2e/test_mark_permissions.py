"""What marking takes beside other runs: the rules of the chart suffice, under its admission policy."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chart.helm import ADMISSION, template
from tests.chart.helm import needed as helm_needed
from tests.e2e.access import HOME, NAME, account
from tests.e2e.api import Api, ApiError, Object
from tests.e2e.binaries import found
from tests.e2e.harness import ControlPlane
from tests.e2e.marker import HIGH, LABEL, RULES, Stage, staged
from tests.e2e.namespace import Namespace
from tests.e2e.waiting import wait_for
from tests.real_prometheus import needed

pytestmark = needed

HOT = ("a", "b", "c")
VALUES: Object = {"marking": {"enabled": True, "rules": RULES["rules"], "label": "=".join(LABEL)}}
RENDERED = template(VALUES, *ADMISSION) if found("helm") else []


@pytest.fixture
def stage(controlplane: ControlPlane, namespace: Namespace, tmp_path: Path) -> Iterator[Stage]:
    """Prometheus has seen all nodes, and none is under pressure."""
    with staged(controlplane, namespace, tmp_path) as made:
        yield made


@helm_needed
def test_the_rules_of_the_chart_suffice_and_allow_no_other_label(stage: Stage) -> None:
    """Nothing that the program asks for is forbidden; its account can set the label of the values alone."""
    stage.load(*HOT, usage=HIGH)
    stage.wait_measured(HOT)
    with account(stage.controlplane, stage.namespace, RENDERED) as kubeconfig:
        admitted = Api(kubeconfig)
        fresh = map(str, itertools.count())  # the same label once more would be no change
        wait_for(lambda: not changed(admitted, {"probe": next(fresh)}), "the admission policy in force")
        offset = stage.controlplane.audit_offset()

        outcome = stage.mark_once(kubeconfig)

        requests = stage.controlplane.requests_since(offset, user=f"system:serviceaccount:{HOME}:{NAME}")
        assert outcome.exit_code == 0, outcome.stderr
        assert stage.marked() == set(HOT)
        assert {"get", "patch"} <= {each.verb for each in requests if each.resource == "nodes"}
        assert not [each for each in requests if each.status in {401, 403}]
        assert changed(admitted, {LABEL[0]: None})
        assert not changed(admitted, {"kubernetes.io/hostname": "b"})


def changed(api: Api, labels: Object) -> bool:
    """Whether the admission policy lets an account change labels of node a."""
    try:
        api.patch("Node", "a", "", {"metadata": {"labels": labels}})
    except ApiError as error:
        if "ValidatingAdmissionPolicy" not in error.message:
            raise
        return False
    return True
