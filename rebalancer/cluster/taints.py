"""Taints and tolerations.

Source: the Kubernetes documentation, Taints and Tolerations; the numeric operators `Lt` and `Gt` are
taken to be enabled.
"""

import re
from collections.abc import Callable, Iterable, Iterator

import msgspec

NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"
PREFER_NO_SCHEDULE = "PreferNoSchedule"

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


#: Pairs of a toleration and a taint from which on it pays to look tolerations up.
_MANY = 100


class Taint(msgspec.Struct, frozen=True, gc=False):
    """A mark on a node that keeps away pods that do not tolerate it."""

    key: str
    value: str = ""
    effect: str = ""

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class Toleration(msgspec.Struct, frozen=True, gc=False):
    """Taints that a pod tolerates; an empty key or effect means any."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Return whether this toleration matches the taint; `tolerationSeconds` does not matter."""
        if self.effect not in ("", taint.effect) or self.key not in ("", taint.key):
            return False
        if self.operator in ("", "Equal"):
            return self.value == taint.value
        if self.operator == "Exists":
            return True
        if self.operator not in ("Lt", "Gt") or not all(map(_INTEGER.fullmatch, (taint.value, self.value))):
            return False
        return int(taint.value) < int(self.value) if self.operator == "Lt" else int(taint.value) > int(self.value)


def hard(taint: Taint) -> bool:
    """Return whether the taint keeps pods from being scheduled (NoSchedule, NoExecute)."""
    return taint.effect in (NO_SCHEDULE, NO_EXECUTE)


def untolerated(
    tolerations: Iterable[Toleration], taints: Iterable[Taint], counts: Callable[[Taint], bool] = hard
) -> Taint | None:
    """Return the first counting taint that no toleration matches, or None."""
    return next(all_untolerated(tolerations, taints, counts), None)


def all_untolerated(
    tolerations: Iterable[Toleration], taints: Iterable[Taint], counts: Callable[[Taint], bool] = hard
) -> Iterator[Taint]:
    """Yield the counting taints that no toleration matches."""
    held, found = tuple(tolerations), tuple(taints)
    by_label = _by_label(held) if len(held) * len(found) > _MANY else None
    for taint in found:
        if by_label is not None:
            held = (*by_label.get((taint.key, taint.value), ()), *by_label.get(None, ()))
        if counts(taint) and not any(each.tolerates(taint) for each in held):
            yield taint


def _by_label(tolerations: Iterable[Toleration]) -> dict[object, list[Toleration]]:
    """Return tolerations by the key and value that they ask for; under None those that ask otherwise, each once."""
    found: dict[object, list[Toleration]] = {}
    for each in dict.fromkeys(tolerations):
        is_equal = each.operator in ("", "Equal") and each.key != ""
        found.setdefault((each.key, each.value) if is_equal else None, []).append(each)
    return found
