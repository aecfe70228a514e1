"""Pages and documents, folded into one snapshot."""

import json
from typing import Any

import pytest

from rebalancer.kube.wire.collect import Collection, add_document
from tests.make import NOW
from tests.unit.kube.wire.documents import page, pod_document, read


def test_pages_add_up_until_there_is_no_token() -> None:
    collector = Collection().collector("Pod")

    assert collector.add_page(page([pod_document("a")], **{"continue": "next"})) == "next"
    assert collector.add_page(page([pod_document("b")])) == ""
    assert collector.add_page(page(None, **{"continue": None})) == ""  # as Go writes an empty one
    assert [pod.name for pod in collector.items] == ["a", "b"]
    with pytest.raises(ValueError, match="PodList was asked for, and v1 NodeList came"):
        collector.add_page(page([], "Node"))


NODE = {"metadata": {"name": "n"}}
BUDGET = {"metadata": {"name": "web", "namespace": "x"}, "spec": {"selector": {}}}
CLASS = {"metadata": {"name": "high"}, "value": 7}
CLAIM = {"metadata": {"name": "data", "namespace": "x"}, "spec": {"storageClassName": "fast"}}
USAGE = {"metadata": {"name": "n"}, "usage": {"cpu": "1"}}


@pytest.mark.parametrize(
    ("kind", "item", "other", "name"),
    [
        ("Pod", pod_document("a", uid="u"), pod_document("a", uid="v"), "default/a"),
        ("Pod", pod_document("a", uid="u"), pod_document("a", creationTimestamp="x"), "default/a"),
        ("Node", NODE, {**NODE, "spec": {"unschedulable": True}}, "n"),
        ("PodDisruptionBudget", BUDGET, {**BUDGET, "status": {"disruptionsAllowed": 1}}, "x/web"),
        ("PriorityClass", CLASS, {**CLASS, "value": 8}, "high"),
        ("PersistentVolumeClaim", CLAIM, {**CLAIM, "spec": {"storageClassName": "slow"}}, "x/data"),
        ("NodeMetrics", USAGE, {**USAGE, "usage": {"cpu": "2"}}, "n"),
    ],
)
def test_an_object_that_occurs_twice_must_be_the_same(kind: str, item: Any, other: Any, name: str) -> None:
    """Two answers of kubectl in one file may overlap; which of two that differ is true, nobody can tell."""
    doubles = read(kind, item, item, {**item, "metadata": {**item["metadata"], "unread": 1}})

    assert repr(doubles) == repr(read(kind, item))
    with pytest.raises(ValueError, match=f"^{kind} {name} occurs twice, and the two differ$"):
        read(kind, item, other)


def documents(*all_of_them: Any) -> Collection:
    collection = Collection()
    for each in all_of_them:
        add_document(collection, json.dumps(each).encode())
    return collection


def test_objects_that_differ_are_found_before_a_snapshot_is_made() -> None:
    """So that the error can name the file that brought the second one."""
    collection = documents({"kind": "PodDisruptionBudget", **BUDGET})
    collection.check()
    collection.add("PodDisruptionBudget", json.dumps({**BUDGET, "spec": {}}).encode())

    with pytest.raises(ValueError, match="PodDisruptionBudget x/web occurs twice"):
        collection.check()


def test_objects_lists_and_lists_of_lists_are_taken_in() -> None:
    """Items of a typed list have no kind of their own; a list without a kind has items that say what they are."""
    pod, node = {"kind": "Pod", **pod_document("a")}, {"metadata": {"name": "n"}}
    listed = {
        "kind": "List",
        "items": [{"kind": "NodeList", "items": [node]}, {"kind": "Pod", **pod_document("a", namespace="other")}],
    }
    untyped = {"items": [{"kind": "Pod", **pod_document("c")}, {"kind": "PodDisruptionBudget", **BUDGET}]}

    snapshot = documents(pod, listed, untyped).snapshot(NOW)

    assert [str(each) for each in snapshot.pods] == ["default/a", "other/a", "default/c"]
    assert [each.name for each in (*snapshot.nodes, *(snapshot.budgets or ()))] == ["n", "web"]


def test_other_kinds_are_ignored() -> None:
    """Whatever else was asked for; their items are not looked at."""
    service = {"kind": "ConfigMap", "metadata": {"name": "a"}, "spec": 5}

    collection = documents({"kind": "List", "items": [service]}, {"kind": "ConfigMapList", "items": [service]}, {})

    assert collection.seen == set()
    assert collection.snapshot(NOW).warnings == ()


def test_an_empty_typed_list_tells_that_there_are_none() -> None:
    """Of its own kind: those that were not read are unknown."""
    for items in ([], None):
        collection = documents({"kind": "PodDisruptionBudgetList", "items": items})

        found = collection.snapshot(NOW)
        assert (found.budgets, found.namespaces, found.priority_classes, found.claims) == ((), None, None, None)


@pytest.mark.parametrize("rest", [{}, {"items": None, "metadata": {"continue": "more"}}])
def test_a_typed_list_without_its_items_is_an_error(rest: dict[str, Any]) -> None:
    """It would tell that there are no PDBs."""
    with pytest.raises(ValueError, match="PodDisruptionBudgetList"):
        documents({"kind": "PodDisruptionBudgetList", **rest})


def test_warnings_do_not_follow_the_order_of_a_file() -> None:
    """Of annotations that cannot be understood, and of objects that cannot be read."""
    doubtful = {"annotations": {"descheduler.alpha.kubernetes.io/evict": "perhaps"}}
    pods = [pod_document(name, **doubtful) for name in "ba"]
    items = [{"kind": "Pod", **each} for each in pods]
    items += [{"kind": "Node", "metadata": {"name": name, "labels": 3}} for name in "ba"]

    there, back = (documents({"kind": "List", "items": each}).snapshot(NOW) for each in (items, items[::-1]))

    assert len(there.warnings) == 2
    assert there.warnings == back.warnings


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        ("Node", "longhorn.io/v1beta2"),
        ("PodDisruptionBudget", "example.com/v1"),
        ("Pod", "metrics.k8s.io/v1"),
        ("PodMetrics", "example.com/v1"),
    ],
)
def test_a_kind_of_another_group_is_another_kind(kind: str, version: str) -> None:
    """A storage system's nodes do not take the place of the cluster's, alone or in a list of their own."""
    item = {"metadata": {"name": "n"}}

    collection = documents(
        {"kind": kind, "apiVersion": version, **item},
        {"kind": f"{kind}List", "apiVersion": version, "items": [item, {"kind": kind, **item}]},
    )

    assert collection.seen == set()


@pytest.mark.parametrize("version", [None, "v1", "policy/v1", "policy/v1beta1"])
def test_a_pdb_may_come_in_any_version(version: str | None) -> None:
    """Also without one, as in files written by hand, and under that of the list that holds it."""
    item = {"kind": "PodDisruptionBudget", **BUDGET} | ({"apiVersion": version} if version else {})

    for document in (item, {"kind": "List", "apiVersion": "v1", "items": [item]}):
        assert len(documents(document).snapshot(NOW).budgets or ()) == 1


def test_the_pages_of_a_list_may_follow_each_other() -> None:
    """Saved one by one, they are complete if the last of them says so."""
    first = {"kind": "NodeList", "items": [NODE], "metadata": {"continue": "more"}}
    last = {"kind": "NodeList", "items": [{"metadata": {"name": "m"}}], "metadata": {"continue": ""}}

    documents(first, last).check()
    with pytest.raises(ValueError, match="the NodeList is not complete"):
        documents(first).check()


def test_a_pod_with_items_is_no_pod() -> None:
    """What looks like a pod and like a list might hide what the list holds."""
    pod = {"kind": "Pod", **pod_document("a"), "items": []}

    with pytest.raises(ValueError, match="PodList was asked for, and Pod came"):
        documents({"kind": "List", "items": [pod]})
