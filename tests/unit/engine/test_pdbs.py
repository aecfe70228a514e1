"""PodDisruptionBudgets, counted down by the API server's own rules."""

from typing import Any

import pytest

from rebalancer.cluster.snapshot import EVERY_NAMESPACE
from rebalancer.engine.pdbs import DisruptionBudgets
from rebalancer.eviction.causes import Code
from rebalancer.eviction.verdict import refused
from rebalancer.report.words import text
from tests.make import cluster, decide, evicted, node, pdb, pod, selector
from tests.unit.engine.stand_ins import Greedy, told

WEB = {"app": "web"}


def web(name: str, **fields: Any) -> Any:
    return pod(name, **{"labels": WEB, **fields})


def test_a_terminating_pod_costs_nothing() -> None:
    """Asked directly, since strategies are not given one; other rules are those of the slow server in the property."""
    assert not DisruptionBudgets([pdb("web", 0)]).refusal(web("a", terminating=True))


def test_one_pdb_that_could_be_read_is_enough_to_rely_on() -> None:
    """A pod that stays without a PDB stays under one that may not select it."""
    others, unread = pdb("other", 9), pdb("web", 9, selector=selector(), problem="bad")

    assert DisruptionBudgets([others, pdb("web", 0)]).select(web("a"))
    assert not DisruptionBudgets([others, unread]).select(web("a"))


def test_pods_that_are_read_again_are_told_apart() -> None:
    """Each is looked at and forgotten, so that the labels of the next one may lie at the same place in memory."""
    budgets = DisruptionBudgets([pdb("web", 0)])

    assert [bool(budgets.refusal(pod("a", labels={"app": app}))) for app in ("db", "web") * 9] == [False, True] * 9


def test_a_status_that_lags_is_told_as_such() -> None:
    """A report does not take it for a PDB whose disruptions are used up."""
    refusal = DisruptionBudgets([pdb("web", 1, observed=False)]).refusal(web("a"))

    assert refusal == refused(Code.PDB, pdb="web", observed=False)


def test_a_pod_under_two_pdbs_is_refused() -> None:
    """The server answers with an error; the reason names both, and of many sixteen: a report would grow with them."""
    two, many = [pdb("web", 9), pdb("all", 9, selector=selector())], [f"b{each:02}" for each in range(20)]

    assert "(all, web)" in told(DisruptionBudgets(two).refusal(web("a")))
    refusal = DisruptionBudgets([pdb(each, 9, selector=selector()) for each in many]).refusal(web("a"))
    assert "b14, b15 and 4 more)" in told(refusal)


@pytest.mark.parametrize(
    ("fields", "granted"),
    [
        pytest.param({}, False, id="a pod that it selects"),
        pytest.param({"ready": False}, False, id="one that is not ready"),
        pytest.param({"labels": {"app": "db"}}, True, id="another pod"),
        pytest.param({"namespace": "other"}, True, id="a pod of another namespace"),
        pytest.param({"phase": "Pending"}, True, id="a pending one, of which the server asks no PDB"),
    ],
)
def test_a_pdb_that_could_not_be_read_allows_nothing(fields: dict[str, Any], granted: bool) -> None:
    unread = pdb("web", 9, current_healthy=9, unhealthy_policy="AlwaysAllow", problem="bad")
    words = told(DisruptionBudgets([unread]).refusal(web("a", **fields)))

    assert words == ("" if granted else "PDB web could not be read, so it allows nothing: bad")


def test_a_pdb_of_which_nothing_could_be_read_holds_in_every_namespace() -> None:
    unread = pdb("", 9, EVERY_NAMESPACE, selector=selector(), problem="bad")
    budgets = DisruptionBudgets([pdb("web", 9), unread])

    for each in (web("a"), pod("b", namespace="x", labels={"any": "thing"})):
        assert "could not be read" in told(budgets.refusal(each))


@pytest.mark.parametrize(
    ("allowed", "ready", "taken"),
    [
        pytest.param(1, 4, ["b"], id="the server has taken the disrupted pod off, the number holds"),
        pytest.param(2, 4, ["b"], id="it is not taken off yet, so it counts here"),
        pytest.param(1, 3, [], id="as many stand as have to"),
        pytest.param(0, 9, [], id="never more than the number says"),
        pytest.param(2, 9, ["b", "c"], id="and not twice"),
    ],
)
def test_a_disrupted_pod_counts_once(allowed: int, ready: int, taken: list[str]) -> None:
    """Of the ready pods, of which two have to stay, `a` is on its way out: it does not go again."""
    pods = [web(name, age=100 - place) for place, name in enumerate("abcdefghi"[:ready])]
    budget = pdb("web", allowed, current_healthy=ready, desired_healthy=2, disrupted=frozenset({"a"}))
    ledger = decide(cluster([node("n1"), node("n2")], pods, budgets=(budget, pdb("other", 0))), Greedy())

    assert evicted(ledger) == taken
    assert ledger.refusals[0].pod.name == "a"
    assert "its eviction has been granted before" in text(ledger.refusals[0].verdict.cause)
    assert ledger.refusals[0].verdict.cause.details == {"pdb": "web", "disrupted": True}


def test_pods_that_are_seen_to_go_stand_no_longer() -> None:
    going = [web("a", terminating=True), web("f", terminating=True)]
    pods = [web("b"), *going, web("c", ready=False), web("d"), pod("e", labels={"app": "db"})]
    budget = pdb("web", 2, current_healthy=2, desired_healthy=2, disrupted=frozenset({"a"}))

    assert DisruptionBudgets([budget], pods).refusal(pods[0]) is not None


def test_a_pod_that_is_not_ready_is_free_only_if_enough_stand() -> None:
    """The server's count may still hold the disrupted pod for a healthy one."""
    pods = [web("a"), web("b"), web("c", ready=False)]
    two = pdb("web", 0, current_healthy=2, desired_healthy=2, disrupted=frozenset({"a"}))
    one = pdb("web", 0, current_healthy=2, desired_healthy=1, disrupted=frozenset({"a"}))

    assert DisruptionBudgets([two], pods).refusal(pods[2]) is not None
    assert DisruptionBudgets([one], pods).refusal(pods[2]) is None
