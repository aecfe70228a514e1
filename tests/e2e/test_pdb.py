"""PodDisruptionBudgets hold, whatever the program is told to do."""

import pytest

from tests.e2e.acts import uids
from tests.e2e.builders import deployment, pdb
from tests.e2e.conftest import Cluster
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program, everything_in
from tests.e2e.waiting import wait_for
from tests.e2e.watching import ReadyWatch

pytestmark = pytest.mark.usefixtures("two_nodes")


def test_never_fewer_ready_than_the_pdb_asks_for(cluster: Cluster, namespace: Namespace, program: Program) -> None:
    """All 10 replicas are replaced run by run under minAvailable 9, and 9 are ready at every moment."""
    namespace.create(pdb("web", min_available=9), deployment("web", replicas=10))
    first = uids(namespace.wait_ready(10, "web"))
    namespace.wait_budget("web", allowed=1)
    evicted: set[str] = set()

    with ReadyWatch(cluster.api, namespace.name) as watch:
        # Two runs for each pod would do; replacements that are not ready in time cost runs that evict nothing.
        for _ in range(40):
            outcome = program.run(everything_in(namespace.name))
            assert outcome.exit_code == 0, outcome.stderr
            assert len(outcome.evicted()) <= 1
            evicted.update(outcome.evicted_uids())
            if first <= evicted:
                break
        wait_for(lambda: len(namespace.ready("web")) == 10, "10 pods of web Ready again")

    assert watch.fewest == {"web": 9}
    assert first <= evicted
    assert not first & uids(namespace.pods("web"))


def test_pdb_stops_a_run_after_what_it_allows(namespace: Namespace, program: Program) -> None:
    """Of 5 pods a PDB that allows 2 disruptions lets 2 go; each of the others is refused by it."""
    namespace.create(pdb("web", max_unavailable=2), deployment("web", replicas=5))
    before = uids(namespace.wait_ready(5, "web"))
    namespace.wait_budget("web", allowed=2)

    outcome = program.run(everything_in(namespace.name))

    assert outcome.exit_code == 0, outcome.stderr
    assert len(outcome.evicted()) == 2
    assert set(outcome.refused().values()) == {"PDB"}
    assert len(outcome.refused()) == 3
    assert len(before & uids(namespace.pods("web"))) == 3


def test_pods_under_two_pdbs_are_refused_with_that_reason(namespace: Namespace, program: Program) -> None:
    """A pod that two PDBs select stays, although both would let it go, and the report says why."""
    web = {"app": "web"}
    namespace.create(deployment("web", replicas=2))
    before = uids(namespace.wait_ready(2, "web"))
    # Later than the pods: a change of a pod brings only one of its PDBs up to date, any of them.
    namespace.create(pdb("one", min_available=0, labels=web), pdb("two", min_available=0, labels=web))
    for each in ("one", "two"):
        namespace.wait_budget(each, allowed=2)

    outcome = program.run(everything_in(namespace.name))

    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.evicted() == []
    assert set(outcome.refused().values()) == {"PDB"}
    assert all("more than one PDB" in reason for reason in outcome.reasons().values())
    assert uids(namespace.pods("web")) == before


@pytest.mark.parametrize(
    ("unhealthy", "min_available", "goes"),
    [
        pytest.param("IfHealthyBudget", 2, True, id="the healthy ones suffice"),
        pytest.param("IfHealthyBudget", 3, False, id="the healthy ones do not suffice"),
        pytest.param("AlwaysAllow", 3, True, id="always allowed"),
    ],
)
def test_unhealthy_pod(
    cluster: Cluster, namespace: Namespace, program: Program, unhealthy: str, min_available: int, goes: bool
) -> None:
    """A pod that is not Ready goes by the PDB's unhealthyPodEvictionPolicy; those that are stay."""
    namespace.create(pdb("web", min_available=min_available, unhealthy=unhealthy), deployment("web", replicas=3))
    sick, *well = namespace.wait_ready(3, "web")
    namespace.wait_budget("web", allowed=3 - min_available)
    name = sick["metadata"]["name"]
    namespace.set_pod_status(name, {"conditions": [{"type": "Ready", "status": "False"}]})
    wait_for(
        lambda: cluster.api.read("PodDisruptionBudget", "web", namespace.name)["status"]["currentHealthy"] == 2,
        "2 healthy pods",
    )

    outcome = program.run(everything_in(namespace.name))

    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.evicted() == ([name] if goes else [])
    assert set(outcome.refused().values()) == {"PDB"}
    assert len(outcome.refused()) == (2 if goes else 3)
    assert uids(well) <= uids(namespace.pods("web"))
    assert (sick["metadata"]["uid"] in uids(namespace.pods("web"))) is not goes
