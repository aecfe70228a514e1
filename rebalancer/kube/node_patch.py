"""The JSON patch (RFC 6902) that changes a node's taints and our annotation and labels, and undoes no change by others.

It first tests that the node's UID, the whole list of taints, our annotation and our labels are still as they were read.
If somebody has changed one of them in between, the patch fails (422) and changes nothing.  It contains no other field.
A test for null passes where the field is absent.
"""

from collections.abc import Mapping
from typing import Any

from rebalancer.kube.marks import MarkedNode, Wanted

Operation = dict[str, Any]

_UID = "/metadata/uid"
_TAINTS = "/spec/taints"
_ANNOTATIONS = "/metadata/annotations"
_LABELS = "/metadata/labels"


def patch(node: MarkedNode, wanted: Wanted) -> list[Operation]:
    """Return the patch; empty where the node is already as wanted."""
    notes = {wanted.annotation: wanted.note}
    tests = [*_tests(_ANNOTATIONS, node.annotations, notes), *_tests(_LABELS, node.labels, wanted.labels)]
    changes = [
        *_taints(node, wanted),
        *_changes(_ANNOTATIONS, node.annotations, notes),
        *_changes(_LABELS, node.labels, wanted.labels),
    ]
    return [_test(_UID, node.uid), _test(_TAINTS, node.taints or None), *tests, *changes] if changes else []


def _test(path: str, value: object) -> Operation:
    return {"op": "test", "path": path, "value": value}


def _tests(path: str, found: Mapping[str, str] | None, wanted: Mapping[str, str | None]) -> list[Operation]:
    if not wanted:
        return []
    return [_test(_below(path, key), found.get(key)) for key in wanted] if found else [_test(path, None)]


def _taints(node: MarkedNode, wanted: Wanted) -> list[Operation]:
    if list(node.taints or ()) == list(wanted.taints):
        return []
    if not wanted.taints:
        return [{"op": "remove", "path": _TAINTS}]
    return [{"op": "add", "path": _TAINTS, "value": wanted.taints}]


def _changes(path: str, found: Mapping[str, str] | None, wanted: Mapping[str, str | None]) -> list[Operation]:
    """Return what makes these entries of a map as they are wanted; None removes one."""
    if not found:
        added = {key: value for key, value in wanted.items() if value is not None}
        return [{"op": "add", "path": path, "value": added}] if added else []
    changed = {key: value for key, value in wanted.items() if found.get(key) != value}
    return [
        {"op": "remove", "path": _below(path, key)}
        if value is None
        else {"op": "add", "path": _below(path, key), "value": value}
        for key, value in changed.items()
    ]


def _below(path: str, key: str) -> str:
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
