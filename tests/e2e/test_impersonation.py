"""A run that acts as somebody else has their permissions on a real API server, and no more."""

import pytest

from tests.e2e.builders import deployment, node
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program, everything_in

ADMIN = ("--as", "deputy", "--as-group", "few", "--as-group", "system:masters")


@pytest.fixture
def four_pods(controlplane: ControlPlane, namespace: Namespace) -> Namespace:
    """A namespace with pods that could go; it takes the control plane of the tests, where everybody is known."""
    namespace.create(node("a"), node("b"), deployment("web", replicas=4))
    namespace.wait_ready(4, "web")
    return namespace


def test_somebody_without_permissions_reads_nothing(four_pods: Namespace, program: Program) -> None:
    """Though the kubeconfig's own user may do everything; the message names them."""
    outcome = program.run(everything_in(four_pods.name), "--as", "deputy", "--as-group", "few")

    assert (outcome.exit_code, outcome.report) == (3, {})
    assert "no permission to list nodes" in outcome.stderr
    assert 'User "deputy"' in outcome.stderr


def test_groups_give_their_permissions(controlplane: ControlPlane, four_pods: Namespace, program: Program) -> None:
    """The second of two does here: each reached the API server as a group of its own, evictions included."""
    start = controlplane.audit_offset()

    outcome = program.run(everything_in(four_pods.name, maxNoOfPodsToEvictTotal=1), *ADMIN)

    assert outcome.exit_code == 0, outcome.stderr
    assert len(outcome.evicted()) == 1
    assert not [each for each in controlplane.requests_since(start) if each.status in {401, 403}]
