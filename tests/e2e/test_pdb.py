"""Pods that are not Ready, and PodDisruptionBudgets."""

import pytest

from tests.e2e.acts import uids
from tests.e2e.builders import deployment, node, pdb
from tests.e2e.program import everything_in
from tests.e2e.waiting import wait_for


@pytest.mark.parametrize(
    ("unhealthy", "min_available", "goes"),
    [
        pytest.param("IfHealthyBudget", 2, True, id="the healthy ones suffice"),
        pytest.param("IfHealthyBudget", 3, False, id="the healthy ones do not suffice"),
        pytest.param("AlwaysAllow", 3, True, id="always allowed"),
    ],
)
def test_unhealthy_pod(controlplane, namespace, program, unhealthy, min_available, goes):
    """A pod that is not Ready goes by the PDB's unhealthyPodEvictionPolicy; those that are stay."""
    namespace.create(node("a"), node("b"))
    namespace.create(pdb("web", min_available=min_available, unhealthy=unhealthy), deployment("web", replicas=3))
    sick, *well = namespace.wait_ready(3, "web")
    namespace.wait_budget("web", allowed=3 - min_available)
    name = sick["metadata"]["name"]
    namespace.set_pod_status(name, {"conditions": [{"type": "Ready", "status": "False"}]})
    wait_for(
        lambda: controlplane.api.read("PodDisruptionBudget", "web", namespace.name)["status"]["currentHealthy"] == 2,
        "2 healthy pods",
    )

    outcome = program.run(everything_in(namespace.name))

    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.evicted() == ([name] if goes else [])
    assert set(outcome.refused().values()) == {"PDB"}
    assert len(outcome.refused()) == (2 if goes else 3)
    assert uids(well) <= uids(namespace.pods("web"))
    assert (sick["metadata"]["uid"] in uids(namespace.pods("web"))) is not goes
