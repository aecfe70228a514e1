"""Pages and documents, folded into one snapshot."""

import json
from typing import Any

from rebalancer.wire.collect import Collection, add_document
from tests.make import NOW
from tests.unit.wire.documents import page, pod_document, read


def test_pages_add_up_until_there_is_no_token() -> None:
    """The token of a page asks for the next one."""
    folder = Collection().folder("Pod")

    assert folder.fold(page([pod_document("a")], **{"continue": "next"})) == "next"
    assert folder.fold(page([pod_document("b")])) == ""
    assert [pod.name for pod in folder.items] == ["a", "b"]


def test_a_list_may_be_null() -> None:
    """As Go writes an empty one."""
    folder = Collection().folder("Pod")

    assert folder.fold(page(None, **{"continue": None})) == ""
    assert folder.items == []


def test_an_object_that_occurs_twice_counts_once_as_it_was_last() -> None:
    """Two answers of kubectl in one file overlap."""
    pods = [pod_document("a", uid="old"), pod_document("a", uid="new"), pod_document("a", uid="x", namespace="other")]
    budget = {"metadata": {"name": "web"}, "spec": {"selector": {}}}

    assert [pod.uid for pod in read("Pod", *pods).pods] == ["new", "x"]
    assert len(read("Node", {"metadata": {"name": "n"}}, {"metadata": {"name": "n"}}).nodes) == 1
    assert len(read("PodDisruptionBudget", budget, budget).budgets or ()) == 1


def documents(*all_of_them: Any) -> Collection:
    collection = Collection()
    for each in all_of_them:
        add_document(collection, json.dumps(each).encode())
    return collection


def test_objects_lists_and_lists_of_lists_are_taken_in() -> None:
    """Items of a typed list have no kind of their own."""
    pod, node = {"kind": "Pod", **pod_document("a")}, {"metadata": {"name": "n"}}
    listed = {"kind": "List", "items": [{"kind": "NodeList", "items": [node]}, {"kind": "Pod", **pod_document("b")}]}

    snapshot = documents(pod, listed).snapshot(NOW)

    assert [each.name for each in snapshot.pods] == ["a", "b"]
    assert [each.name for each in snapshot.nodes] == ["n"]


def test_other_kinds_are_ignored() -> None:
    """Whatever else was asked for; their items are not looked at."""
    service = {"kind": "ConfigMap", "metadata": {"name": "a"}, "spec": 5}

    collection = documents({"kind": "List", "items": [service]}, {"kind": "ConfigMapList", "items": [service]}, {})

    assert collection.seen == set()
    assert collection.snapshot(NOW).warnings == ()


def test_an_empty_typed_list_tells_that_there_are_none() -> None:
    """Also where it is null."""
    for items in ([], None):
        collection = documents({"kind": "PodDisruptionBudgetList", "items": items})

        assert collection.snapshot(NOW).budgets == ()


def test_of_doubles_the_last_counts():
    """A file of two overlapping lists does not make a node fuller than it is."""
    collection = Collection()
    for phase in ("Pending", "Running"):
        collection.add("Node", b'{"metadata": {"name": "n1"}}')
        collection.add("Pod", b'{"metadata": {"name": "a"}, "status": {"phase": "%s"}}' % phase.encode())

    snapshot = collection.snapshot(NOW)

    assert [pod.phase for pod in snapshot.pods] == ["Running"]
    assert len(snapshot.nodes) == 1
