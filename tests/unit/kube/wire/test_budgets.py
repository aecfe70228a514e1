"""PodDisruptionBudgets that cannot be read: they allow nothing, for as many pods as they may select."""

from typing import Any

import pytest

from rebalancer.cluster.selectors import EVERYTHING
from rebalancer.cluster.snapshot import EVERY_NAMESPACE
from rebalancer.kube.wire.collect import Collection
from tests.make import NOW, selector
from tests.unit.kube.wire.documents import read

WEB = {"matchLabels": {"app": "web"}}
STATUS = {"disruptionsAllowed": 5, "observedGeneration": 1, "currentHealthy": 9, "desiredHealthy": 4}

NAMED = {"name": "web", "namespace": "shop"}


def pdb(**fields: Any) -> dict[str, Any]:
    return {"metadata": {**NAMED, "generation": 1}, "spec": {"selector": WEB}, "status": STATUS, **fields}


def spec(**fields: Any) -> dict[str, Any]:
    return pdb(spec={"selector": WEB, **fields})


def expression(**fields: Any) -> dict[str, Any]:
    return spec(selector={"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"], **fields}]})


def test_a_pdb() -> None:
    """Budget, health, and the names of the pods that are being disrupted: the times do not matter."""
    status = {**STATUS, "disruptedPods": {"a": "2026-01-15T11:59:00Z", "b": None}}
    (found,) = read("PodDisruptionBudget", pdb(status=status)).budgets or ()

    assert (found.namespace, found.name, found.selector) == ("shop", "web", selector(app="web"))
    assert (found.disruptions_allowed, found.current_healthy, found.desired_healthy) == (5, 9, 4)
    assert (found.observed, found.disrupted, found.problem) == (True, {"a", "b"}, "")


@pytest.mark.parametrize(
    ("given", "expected"), [({}, None), ({"selector": None}, None), ({"selector": {}}, EVERYTHING)], ids=str
)
def test_an_absent_selector_differs_from_an_empty_one(given: dict[str, Any], expected: Any) -> None:
    """The one selects nothing, however bad the rest, the other everything."""
    fine, bad = (
        read("PodDisruptionBudget", pdb(spec=given), pdb(spec=given, metadata={"name": "b"}, status=[])).budgets or ()
    )

    assert fine.selector == bad.selector == expected


@pytest.mark.parametrize(("policy", "meant"), [(None, "IfHealthyBudget"), ("AlwaysAllow", "AlwaysAllow")])
def test_unhealthy_pods_are_guarded_unless_the_budget_says_otherwise(policy: str | None, meant: str) -> None:
    """The default of the API, which is the careful one."""
    (found,) = read("PodDisruptionBudget", spec(unhealthyPodEvictionPolicy=policy)).budgets or ()

    assert (found.unhealthy_policy, found.problem) == (meant, "")


@pytest.mark.parametrize("status", [None, {}, {"disruptedPods": None}])
def test_what_a_status_does_not_say_is_zero(status: Any) -> None:
    """A new budget has no status: it allows nothing, none of its pods counts as healthy, and it is not up to date."""
    (found,) = read("PodDisruptionBudget", pdb(status=status)).budgets or ()

    assert (found.disruptions_allowed, found.current_healthy, found.desired_healthy) == (0, 0, 0)
    assert found.unhealthy_policy == "IfHealthyBudget"
    assert (found.observed, found.disrupted, found.problem) == (False, frozenset(), "")


@pytest.mark.parametrize(
    "item",
    [
        *(pdb(status={**STATUS, "disruptionsAllowed": each}) for each in (None, "5", True, 1 << 31)),
        *(pdb(status={**STATUS, "currentHealthy": each}) for each in ([], -(1 << 31) - 1)),
        *(pdb(status={**STATUS, **each}) for each in ({"observedGeneration": None}, {"disruptedPods": ["a"]})),
        pdb(status=[]),
        *(spec(unhealthyPodEvictionPolicy=each) for each in ("Always", "", 1)),
        *(pdb(metadata={**NAMED, **each}) for each in ({"labels": {"release": 7}}, {"generation": "x"})),
    ],
)
def test_one_whose_selector_can_be_read_counts_for_the_pods_that_it_selects(item: dict[str, Any]) -> None:
    """The others of its namespace are shown to be none of its business."""
    (found,) = read("PodDisruptionBudget", item).budgets or ()

    assert (found.namespace, found.name, found.selector) == ("shop", "web", selector(app="web"))
    assert found.problem


@pytest.mark.parametrize(
    "item",
    [
        *(spec(selector={"matchLabels": each}) for each in ({"app": 1}, {"app": "web", "x": None}, [], False)),
        *(spec(selector=each) for each in ({"matchExpressions": ""}, {"matchLabel": {"app": "web"}}, "app=web")),
        *(expression(operator=each) for each in ("Like", "in")),
        *(expression(values=each) for each in ("web", [])),
        expression(key=None),
        pdb(spec=None),
        {"metadata": NAMED},
    ],
)
def test_one_whose_selector_cannot_be_read_counts_for_its_namespace(item: dict[str, Any]) -> None:
    """Any pod of it might be selected; the warning names the PDB and the cause."""
    snapshot = read("PodDisruptionBudget", item)
    (found,) = snapshot.budgets or ()

    assert (found.namespace, found.name, found.selector) == ("shop", "web", EVERYTHING)
    assert found.problem
    assert snapshot.warnings == (
        f"PodDisruptionBudget shop/web is malformed and allows no disruption: {found.problem}",
    )


def test_one_without_generations_is_up_to_date() -> None:
    """Files written by hand leave them out, on both sides."""
    unsaid = pdb(metadata={"name": "web"}, status={"disruptionsAllowed": 1})
    lagging = pdb(metadata={"name": "lags", "generation": 3}, status={"observedGeneration": 2})

    found = read("PodDisruptionBudget", unsaid, lagging).budgets or ()

    assert [each.observed for each in found] == [True, False]


@pytest.mark.parametrize("metadata", [{}, {"namespace": None}, {"namespace": ""}])
def test_one_without_a_namespace_is_in_the_default_one(metadata: dict[str, Any]) -> None:
    """Whether the rest of it can be read or not: it harms no other namespace."""
    good, bad = pdb(metadata={"name": "a", **metadata}), pdb(metadata={"name": "b", **metadata}, status=[])

    found = read("PodDisruptionBudget", good, bad).budgets or ()

    assert [(each.name, each.namespace, bool(each.problem)) for each in found] == [
        ("a", "default", False),
        ("b", "default", True),
    ]


@pytest.mark.parametrize(
    "item", [None, 5, [], pdb(metadata=None), pdb(metadata={"name": "web", "namespace": 7}), pdb(metadata=["web"])]
)
def test_one_of_which_not_even_the_namespace_can_be_read_counts_for_all(item: Any) -> None:
    snapshot = read("PodDisruptionBudget", item, item)

    assert snapshot.budgets
    assert {each.namespace for each in snapshot.budgets} == {EVERY_NAMESPACE}
    assert all(each.problem for each in snapshot.budgets)
    assert snapshot.warnings[0].startswith("2 PodDisruptionBudget objects (")
    collection = Collection()
    collection.add("PodDisruptionBudget", b'{"metadata": {"name": "\xff"}}')  # bytes that are not UTF-8
    assert [each.namespace for each in collection.snapshot(NOW).budgets or ()] == [EVERY_NAMESPACE]
