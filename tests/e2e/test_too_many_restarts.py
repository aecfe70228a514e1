"""RemovePodsHavingTooManyRestarts, by the facts of the descheduler's end-to-end tests."""

import pytest

from tests.e2e.acts import set_restarts, uids
from tests.e2e.api import Object
from tests.e2e.builders import claim, claim_volume, deployment, storage_class, volume
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program, policy

pytestmark = pytest.mark.usefixtures("two_nodes")


def restarts(namespace: Namespace, threshold: int, evictor: Object | None = None) -> Object:
    args = {"podRestartThreshold": threshold, "namespaces": {"include": [namespace.name]}}
    return policy({"RemovePodsHavingTooManyRestarts": args}, evictor)


@pytest.mark.parametrize(("threshold", "goes"), [(10000, False), (3, True)])
def test_pods_that_restart_too_often(namespace: Namespace, program: Program, threshold: int, goes: bool) -> None:
    """All 4 crash-looping pods go once they have restarted as often as the threshold says, and none before."""
    namespace.create(deployment("web", replicas=4))
    pods = namespace.wait_ready(4, "web")
    set_restarts(namespace, pods, restarts=3)

    outcome = program.run(restarts(namespace, threshold))

    assert outcome.exit_code == 0, outcome.stderr
    assert set(outcome.evicted_uids()) == (uids(pods) if goes else set())
    assert uids(namespace.wait_ready(4, "web")).isdisjoint(uids(pods)) is goes


@pytest.mark.parametrize(("protected", "goes"), [("silver", True), ("gold", False)])
def test_claims_of_a_protected_storage_class(
    controlplane: ControlPlane, namespace: Namespace, program: Program, protected: str, goes: bool
) -> None:
    """Pods with a claim stay if its storage class is a protected one, and go if another one is."""
    data = f"data-{namespace.name}"
    namespace.create(storage_class("gold"), volume(data, "gold"), claim("data", "gold"))
    namespace.create(deployment("db", replicas=4, volumes=[claim_volume("data")]))
    pods = namespace.wait_ready(4, "db")
    set_restarts(namespace, pods, restarts=3)
    config = {"PodsWithPVC": {"protectedStorageClasses": [{"name": protected}]}}

    outcome = program.run(
        restarts(namespace, 3, {"podProtections": {"extraEnabled": ["PodsWithPVC"], "config": config}})
    )

    assert outcome.exit_code == 0, outcome.stderr
    assert set(outcome.evicted_uids()) == (uids(pods) if goes else set())
    assert set(outcome.refused().values()) == (set() if goes else {"PodsWithPVC"})
    assert uids(namespace.wait_ready(4, "db")).isdisjoint(uids(pods)) is goes
