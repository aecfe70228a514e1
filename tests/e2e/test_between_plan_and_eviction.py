"""What changes after the program has read the cluster, and before its first eviction; and pods that are not Ready."""

from collections.abc import Callable

import pytest

from tests.e2e.acts import cordon, uids
from tests.e2e.builders import deployment, node, pdb, statefulset
from tests.e2e.namespace import is_ready
from tests.e2e.program import Outcome, Program, everything_in
from tests.e2e.proxy import Hold, Proxy
from tests.e2e.waiting import wait_for

#: Runs the program on all pods of a namespace; calls back with the name of the first pod before that one is evicted.
Interrupted = Callable[[str, Callable[[str], None]], Outcome]


@pytest.fixture
def interrupted(controlplane):
    """The program with something done between its plan and its first eviction."""
    hold = Hold("POST", "/eviction")
    with Proxy(controlplane, hold) as proxy:
        through = Program(proxy.kubeconfig(controlplane.kubeconfig))

        def run(namespace, meanwhile):
            with through.start(everything_in(namespace)) as running:
                meanwhile(hold.wait().split("/")[-2])
                hold.release()
                return running.finish()

        yield run


@pytest.fixture
def settled(namespace):
    namespace.create(node("a"), node("b"))
    return namespace


def test_pod_made_again_under_its_name_is_not_touched(controlplane, settled, interrupted):
    """A StatefulSet's pod that was deleted and made again in the meantime stays; the others go."""
    settled.create(statefulset("db", replicas=3))
    before = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in settled.wait_ready(3, "db")}
    made_again: dict[str, str] = {}

    def replace(name):
        controlplane.api.delete("Pod", name, settled.name, grace=0)
        pod = wait_for(lambda: another(settled, name, before[name]), f"{name} made again")
        made_again[name] = pod["metadata"]["uid"]

    start = controlplane.audit_offset()
    outcome = interrupted(settled.name, replace)

    ((name, uid),) = made_again.items()
    assert outcome.exit_code == 0, outcome.stderr
    assert [each["name"] for each in outcome.report["unknown"]] == [name]
    assert set(outcome.evicted_uids()) == set(before.values()) - {before[name]}
    assert controlplane.api.read("Pod", name, settled.name)["metadata"]["uid"] == uid
    first = next(each for each in controlplane.requests_since(start) if each.subresource == "eviction")
    assert (first.name, first.status) == (name, 409)


def test_budget_used_up_by_others(controlplane, settled, interrupted):
    """A PDB that allowed one when it was read has the last word when another has used that one up."""
    settled.create(pdb("web", min_available=2), deployment("web", replicas=3))
    pods = settled.wait_ready(3, "web")
    settled.wait_budget("web", allowed=1)

    def evict_another(name):
        cordon(controlplane.api, "a", "b")  # no replacement can start, so the budget stays used up
        other = next(pod["metadata"]["name"] for pod in pods if pod["metadata"]["name"] != name)
        controlplane.api.evict(other, settled.name)
        settled.wait_budget("web", allowed=0)

    outcome = interrupted(settled.name, evict_another)

    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.evicted() == []
    assert "PDB" in outcome.refused().values()
    assert any("needs 2 healthy pods and has 2 currently" in reason for reason in outcome.reasons().values())
    assert len(settled.ready("web")) == 2


def test_second_pdb_that_came_in_between(controlplane, settled, interrupted):
    """The server's error for a pod under two PDBs is a refusal with that reason; no pod goes."""
    settled.create(pdb("one", min_available=0, labels={"app": "web"}), deployment("web", replicas=2))
    before = {pod["metadata"]["uid"] for pod in settled.wait_ready(2, "web")}
    settled.wait_budget("one", allowed=2)

    def add(_):
        settled.create(pdb("two", min_available=0, labels={"app": "web"}))
        settled.wait_budget("two", allowed=2)

    start = controlplane.audit_offset()
    outcome = interrupted(settled.name, add)

    assert outcome.exit_code == 0, outcome.stderr
    assert set(outcome.refused().values()) == {"PDB"}
    assert all("more than one PodDisruptionBudget" in reason for reason in outcome.reasons().values())
    asked = [each.status for each in controlplane.requests_since(start) if each.subresource == "eviction"]
    assert asked == [500, 500]
    assert {pod["metadata"]["uid"] for pod in settled.pods("web")} == before


def another(namespace, name, than):
    found = [pod for pod in namespace.pods() if pod["metadata"]["name"] == name and pod["metadata"]["uid"] != than]
    return found[0] if found and is_ready(found[0]) else None


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
