"""Marks: what a steered run writes to a node, so that kube-scheduler prefers other nodes for a while.

A mark is one or two soft taints (effect PreferNoSchedule) and an annotation:

    metadata.annotations  kube-rebalancer/avoid: {"run": "20260115T120000Z-9f3a11c2",
                                                  "keys": ["kube-rebalancer/avoid", "kube-rebalancer/avoid-more"],
                                                  "expires": "2026-01-15T12:07:00Z"}
    spec.taints           key kube-rebalancer/avoid, value the run, effect PreferNoSchedule; the same with ...-more

Two taints need two keys, since each pair of key and effect is unique on a node.  The value says which run has set a
taint, so that a run takes off only its own taints, even if somebody changes or removes the annotation.

A kubelet may write the annotation.  So it makes no taint ours: that do the usual keys, those of the policy, and a value
that is a run of the record (`rebalancer.kube.run_record`).  A taint that the annotation alone names stays, and is told.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec

from rebalancer.policy.steering import AVOID_KEY, avoid_keys

#: The node's annotation.  It does not depend on the taints' keys, so that a mark is found after these were changed.
ANNOTATION = "kube-rebalancer/avoid"
SOFT = "PreferNoSchedule"

_USUAL = avoid_keys(AVOID_KEY)

#: A taint as the API server writes it; taints of others are written back unchanged.
Taint: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of the taints.

    Attributes:
        first: of the taint that every marked node carries.
        second: of the taint that hot nodes carry in addition.
        runs: their soft taints are ours whatever key they have.
    """

    first: str
    second: str
    runs: frozenset[str] = frozenset()

    @classmethod
    def of(cls, key: str, runs: Iterable[str] = ()) -> "Keys":
        """Return both keys, made from the configured one."""
        return cls(*avoid_keys(key), frozenset(runs))

    def at(self, level: int) -> tuple[str, ...]:
        """Return the keys of the taints that a node carries at a level: none at 0, one at 1, both at 2."""
        return (self.first, self.second)[:level]

    def covers(self, taint: Taint) -> bool:
        """Return whether a taint is ours, whichever run has set it."""
        keys = (self.first, self.second, *_USUAL)
        return is_soft(taint) and (taint.get("key") in keys or taint.get("value") in self.runs)


class Mark(msgspec.Struct, frozen=True):
    """Which run the taints belong to, as the annotation says it.

    Attributes:
        run: the run that has set the taints; it is also the value of each taint.
        keys: of the taints.
        expires: from when on no run uses the taints any more.
    """

    run: str
    keys: tuple[str, ...]
    expires: datetime

    def of(self, keys: tuple[str, ...]) -> "Mark":
        """Return the same mark with other keys."""
        return Mark(self.run, keys, self.expires)

    def text(self) -> str:
        """Return the annotation's value."""
        until = self.expires.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return msgspec.json.encode({"run": self.run, "keys": self.keys, "expires": until}).decode()


@dataclass(frozen=True, slots=True)
class MarkedNode:
    """The parts of a node that concern marks.

    Attributes:
        name: of the node.
        uid: of the node: a new node may get the same name.
        taints: as the API server has them; None where it has no list.
        annotations: as the API server has them; None where it has none.
        labels: the same for labels.
    """

    name: str
    uid: str
    taints: Sequence[Taint] | None
    annotations: Mapping[str, str] | None
    labels: Mapping[str, str] | None = None

    @property
    def note(self) -> str | None:
        """The annotation, None where there is none."""
        return self.annotation(ANNOTATION)

    def annotation(self, key: str) -> str | None:
        """Return the value of an annotation; None where there is none."""
        return (self.annotations or {}).get(key)

    @property
    def mark(self) -> Mark | None:
        """What the annotation says; None where it cannot be read: then the taints belong to no run."""
        try:
            mark = msgspec.json.decode(self.note or "", type=Mark)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        return mark if mark.expires.tzinfo else None

    def is_marked(self, keys: Keys) -> bool:
        """Return whether there is an annotation or a taint of ours."""
        return self.note is not None or any(map(keys.covers, self.taints or ()))

    def claimed(self, keys: Keys) -> Sequence[Taint]:
        """Return the taints of which the annotation says that they are ours, and nothing else does."""
        mark = self.mark
        if mark is None:
            return ()
        named = [each for each in self.taints or () if each.get("key") in mark.keys and each.get("value") == mark.run]
        return [each for each in named if is_soft(each) and not keys.covers(each)]


def is_soft(taint: Taint) -> bool:
    """Return whether a taint has the effect PreferNoSchedule, like ours."""
    return taint.get("effect") == SOFT


@dataclass(frozen=True, slots=True)
class Wanted:
    """A node's taints, our annotation and our labels as they should be.

    Attributes:
        taints: all of them.
        note: the value of our annotation; None for no annotation.
        annotation: which annotation that is.
        labels: the labels that are ours; None for one that should not be there.
    """

    taints: Sequence[Taint]
    note: str | None
    annotation: str = ANNOTATION
    labels: Mapping[str, str | None] = field(default_factory=dict)


def marked(node: MarkedNode, mark: Mark, keys: Keys) -> Wanted:
    """Return the node with this mark, and without any other mark of ours; the taints of others keep their order."""
    ours = [{"key": key, "value": mark.run, "effect": SOFT} for key in mark.keys]
    return Wanted([*_others(node, keys), *ours], mark.text())


def unmarked(node: MarkedNode, keys: Keys) -> Wanted:
    """Return the node without a mark, whichever run has set it; a taint that only the annotation names keeps that."""
    return Wanted(_others(node, keys), node.note if node.claimed(keys) else None)


def without_run(node: MarkedNode, run: str) -> Wanted:
    """Return the node without the mark of this run; the mark of another run stays."""
    kept = [each for each in node.taints or () if not (is_soft(each) and each.get("value") == run)]
    is_own = node.mark is not None and node.mark.run == run
    return Wanted(kept, None if is_own else node.note)


def _others(node: MarkedNode, keys: Keys) -> list[Taint]:
    return [each for each in node.taints or () if not keys.covers(each)]
