"""The JSON patch (RFC 6902) that changes a node's taints and our annotation, and never undoes a change by others.

It first tests that the node's UID, the whole list of taints and our annotation are still as they were read.  If
somebody has changed one of them in between, the patch fails (422) and changes nothing.  It contains no other field.
A test for null passes where the field is absent.
"""

from typing import Any

from rebalancer.kube.marks import ANNOTATION, MarkedNode, Wanted

Operation = dict[str, Any]

_UID = "/metadata/uid"
_TAINTS = "/spec/taints"
_ANNOTATIONS = "/metadata/annotations"
_NOTE = f"{_ANNOTATIONS}/{ANNOTATION.replace('~', '~0').replace('/', '~1')}"


def patch(node: MarkedNode, wanted: Wanted) -> list[Operation]:
    """Return the patch; empty where the node is already as wanted."""
    taints, note = _taints(node, wanted), _note(node, wanted)
    if not taints and not note:
        return []
    return [_test(_UID, node.uid), _test(_TAINTS, node.taints or None), *_tests_of_note(node), *taints, *note]


def _test(path: str, value: object) -> Operation:
    return {"op": "test", "path": path, "value": value}


def _tests_of_note(node: MarkedNode) -> list[Operation]:
    if not node.annotations:
        return [_test(_ANNOTATIONS, None)]
    return [_test(_NOTE, node.note)]


def _taints(node: MarkedNode, wanted: Wanted) -> list[Operation]:
    if list(node.taints or ()) == list(wanted.taints):
        return []
    if not wanted.taints:
        return [{"op": "remove", "path": _TAINTS}]
    return [{"op": "add", "path": _TAINTS, "value": wanted.taints}]


def _note(node: MarkedNode, wanted: Wanted) -> list[Operation]:
    if node.note == wanted.note:
        return []
    if wanted.note is None:
        return [{"op": "remove", "path": _NOTE}]
    if not node.annotations:
        return [{"op": "add", "path": _ANNOTATIONS, "value": {ANNOTATION: wanted.note}}]
    return [{"op": "add", "path": _NOTE, "value": wanted.note}]
