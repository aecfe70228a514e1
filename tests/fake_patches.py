"""JSON patches (RFC 6902) for `FakeApiServer`: test, add and remove, as kube-apiserver applies them.

A test for null passes where nothing is there; a test below a map that is not there fails.  Nothing is kept of a patch
of which one part fails.
"""

import copy
from typing import Any

Object = dict[str, Any]


class FailedError(Exception):
    """The patch cannot be applied: the server answers 422, and names no field."""


def patched(before: Object, operations: list[Object]) -> Object:
    """Return the object with the operations done, and without the maps and lists that they have emptied."""
    after = copy.deepcopy(before)
    for each in operations:
        _apply(after, each)
    return _without_empty(after)


def _apply(document: Object, operation: Object) -> None:
    *parents, last = [_unescaped(part) for part in operation["path"].split("/")[1:]]
    place: Any = document
    for part in parents:
        if not isinstance(place, dict) or part not in place:
            raise FailedError(f"missing path {operation['path']}")
        place = place[part]
    match operation["op"]:
        case "test":
            if place.get(last) != operation["value"]:
                raise FailedError(f"testing value {operation['path']} failed")
        case "add":
            place[last] = copy.deepcopy(operation["value"])
        case "remove" if last in place:
            del place[last]
        case _:
            raise FailedError(f"{operation['op']} of {last} cannot be done")


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def _without_empty(document: Object) -> Object:
    for part in ("metadata", "spec"):
        for key in [key for key, value in document.get(part, {}).items() if value in ({}, [])]:
            del document[part][key]
    return document
