"""PodDisruptionBudgets and JSON patches (RFC 6902) for `FakeApiServer`, by the rules of the real server."""

import copy
from collections.abc import Mapping
from typing import Any

from tests.fake_http import Reply, failure

Object = dict[str, Any]


def spend(pdb: Object, pod: Object) -> Reply | None:
    """Count one eviction on a PDB, or refuse it."""
    name, status = pdb["metadata"]["name"], pdb.setdefault("status", {})
    healthy, needed = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    if not _is_ready(pod):
        always = pdb["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
        if always or healthy >= needed > 0:
            return None
    if status.get("observedGeneration", 0) < pdb["metadata"].get("generation", 0):
        cause = f"The disruption budget {name} is still being processed by the server."
        return _too_many(cause, retry_after=10)
    if status.get("disruptionsAllowed", 0) <= 0:
        return _too_many(f"The disruption budget {name} needs {needed} healthy pods and has {healthy} currently")
    status["disruptionsAllowed"] -= 1
    return None


def _too_many(cause: str, *, retry_after: int = 0) -> Reply:
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    body = failure(429, message, reason="TooManyRequests")
    body["details"] = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    return Reply(429, body, {"Retry-After": str(retry_after)} if retry_after else {})


def _is_ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def covers(pdb: Object, pod: Object) -> bool:
    if pdb["metadata"].get("namespace") != pod["metadata"].get("namespace"):
        return False
    selector, labels = pdb["spec"].get("selector"), pod["metadata"].get("labels", {})
    if selector is None:
        return False
    by_label = all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
    return by_label and all(_agrees(each, labels) for each in selector.get("matchExpressions", []))


def _agrees(expression: Object, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values", [])
    return {
        "In": labels.get(key) in values,
        "NotIn": labels.get(key) not in values,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }[expression["operator"]]


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
