"""PodDisruptionBudgets, counted down by the API server's own rules."""

from typing import Any

import pytest

from rebalancer.guards.pdbs import DisruptionBudgets
from tests.make import cluster, decide, evicted, node, pdb, pod, refused, selector
from tests.unit.engine.stand_ins import Greedy

WEB = {"app": "web"}


def web(name: str, **fields: Any) -> Any:
    return pod(name, **{"labels": WEB, **fields})


@pytest.mark.parametrize(
    ("fields", "budget", "granted"),
    [
        pytest.param({}, {"allowed": 1}, True, id="a ready pod within the budget"),
        pytest.param({}, {"allowed": 0}, False, id="a ready pod without a budget"),
        pytest.param({}, {"allowed": -1}, False, id="a negative budget"),
        pytest.param({"labels": {}}, {"allowed": 0}, True, id="a pod that the PDB does not select"),
        pytest.param({"namespace": "other"}, {"allowed": 0}, True, id="a pod of another namespace"),
        pytest.param({}, {"allowed": 0, "selector": None}, True, id="a PDB without a selector selects nothing"),
        pytest.param({"labels": {}}, {"allowed": 0, "selector": selector()}, False, id="an empty selector selects all"),
        pytest.param({"phase": "Pending"}, {"allowed": 0}, True, id="a pending pod costs nothing"),
        pytest.param({"phase": "Failed"}, {"allowed": 0}, True, id="nor does a failed one"),
        pytest.param({"phase": "Succeeded"}, {"allowed": 0}, True, id="nor one that has succeeded"),
        pytest.param({}, {"allowed": 1, "observed": False}, False, id="a status that lags counts as zero"),
        pytest.param({"ready": False}, {"allowed": 0}, False, id="an unready pod while too few are healthy"),
        pytest.param(
            {"ready": False},
            {"allowed": 0, "current_healthy": 2, "desired_healthy": 2},
            True,
            id="an unready pod while enough are healthy",
        ),
        pytest.param(
            {"ready": False},
            {"allowed": 0, "current_healthy": 0, "desired_healthy": 0},
            False,
            id="which needs at least one to be desired",
        ),
        pytest.param(
            {"ready": False},
            {"allowed": 0, "unhealthy_policy": "AlwaysAllow"},
            True,
            id="an unready pod that may always go",
        ),
        pytest.param(
            {"ready": False},
            {"allowed": 0, "unhealthy_policy": "AlwaysAllow", "observed": False},
            True,
            id="also while the status lags",
        ),
        pytest.param(
            {},
            {"allowed": 0, "unhealthy_policy": "AlwaysAllow"},
            False,
            id="the policy is none of a ready pod's business",
        ),
        pytest.param({"ready": False}, {"allowed": 1}, True, id="an unready pod that the budget pays for"),
    ],
)
def test_each_rule(fields: dict[str, Any], budget: dict[str, Any], granted: bool) -> None:
    """What the API server would answer."""
    refusal = DisruptionBudgets([pdb("web", **budget)]).refusal(web("a", **fields))

    assert (refusal is None) is granted
    assert refusal is None or (refusal.by == "PDB" and "PDB web" in refusal.reason)


def test_a_terminating_pod_costs_nothing() -> None:
    """It goes anyway."""
    assert not DisruptionBudgets([pdb("web", 0)]).refusal(web("a", terminating=True))


def test_a_pod_under_two_pdbs_is_refused() -> None:
    """The server answers with an error; the reason names both."""
    refusal = DisruptionBudgets([pdb("web", 9), pdb("all", 9, selector=selector())]).refusal(web("a"))

    assert refusal is not None
    assert "(all, web)" in refusal.reason


def test_a_budget_is_counted_down() -> None:
    """Over strategies, for pods that cost something; pods of other PDBs do not matter."""
    pods = [web("a"), web("b", ready=False), web("c"), web("d"), pod("e", labels={"app": "db"})]
    budgets = (pdb("web", 2, current_healthy=3, desired_healthy=1), pdb("db", 1))
    on = cluster([node("n1"), node("n2")], pods, budgets=budgets)

    ledger = decide(on, Greedy(), Greedy())

    assert evicted(ledger) == ["a", "b", "c", "e"]
    assert refused(ledger)["d"] == "PDB"


def test_budgets_of_one_name_in_two_namespaces_are_two() -> None:
    """Each is spent alone."""
    pods = [web("a"), web("b", namespace="other")]
    on = cluster([node("n1"), node("n2")], pods, budgets=(pdb("web", 1), pdb("web", 1, "other")))

    assert evicted(decide(on, Greedy())) == ["a", "b"]
