"""Marks of steered runs, which make kube-scheduler prefer other nodes for a while, and of nodes that are held empty.

A mark of steering is one or two soft taints (effect PreferNoSchedule) and an annotation:

    metadata.annotations  kube-rebalancer/avoid: {"run": "20260115T120000Z-9f3a11c2",
                                                  "keys": ["kube-rebalancer/avoid", "kube-rebalancer/avoid-more"],
                                                  "expires": "2026-01-15T12:07:00Z"}
    spec.taints           key kube-rebalancer/avoid, value the run, effect PreferNoSchedule; the same with ...-more

Two taints need two keys, since each pair of key and effect is unique on a node.  The value says which run has set a
taint, so that a run takes off only its own taints, even if somebody changes or removes the annotation.

A kubelet may write the annotation.  So it makes no taint ours: that do the usual keys, those of the policy, and a value
that is a run of the record (`rebalancer.kube.run_marks`).  A taint that the annotation alone names stays, and is told.

A node that a run has emptied is held, so that it stays empty for a while:

    spec.taints           key kube-rebalancer/hold, effect PreferNoSchedule
    metadata.annotations  kube-rebalancer/hold: {"run": "20260115T120000Z-9f3a11c2", "expires": "2026-01-15T12:15:00Z"}

These outlive the run.  Whoever finds one that has expired takes it off: the next live run, or `unmark`.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias, TypeVar

import msgspec

from rebalancer.kube.wire.annotations import read_note
from rebalancer.policy.moving import AVOID_KEY, HOLD_KEY, avoid_keys

#: The node's annotation.  It does not depend on the taints' keys, so that a mark is found after these were changed.
ANNOTATION = "kube-rebalancer/avoid"
SOFT = "PreferNoSchedule"

_USUAL = avoid_keys(AVOID_KEY)

#: A taint as the API server writes it; taints of others are written back unchanged.
Taint: TypeAlias = Mapping[str, Any]


def in_utc(time: datetime) -> str:
    """Return a time as annotations have it, in whole seconds."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


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


class Note(msgspec.Struct, frozen=True):
    """What an annotation of ours says."""

    def text(self) -> str:
        """Return the annotation's value."""
        plain = msgspec.to_builtins(self, builtin_types=(datetime,))
        return json.dumps(plain, default=in_utc, separators=(",", ":"), ensure_ascii=False)


class Mark(Note, frozen=True):
    """Which run the taints belong to, as the annotation says it.

    Attributes:
        run: the run that has set the taints; it is also the value of each taint.
        expires: from when on no run uses the taints any more.
    """

    run: str
    keys: tuple[str, ...]
    expires: datetime

    def of(self, keys: tuple[str, ...]) -> "Mark":
        """Return the same mark with other keys."""
        return Mark(self.run, keys, self.expires)


class HoldMark(Note, frozen=True):
    """What the annotation of a held node says.

    Attributes:
        expires: from when on the taint is of no use any more.
    """

    run: str
    expires: datetime


MarkT = TypeVar("MarkT", Mark, HoldMark)


def _timed(mark: MarkT | None) -> MarkT | None:
    """Return a mark whose end is known; None for any other."""
    return mark if mark and mark.expires.tzinfo else None


@dataclass(frozen=True, slots=True)
class MarkedNode:
    """The parts of a node that concern marks.

    Attributes:
        uid: of the node: a new node may get the same name.
        taints: as the API server has them; None where it has no list.
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
        return _timed(read_note(self.note, Mark))

    @property
    def hold(self) -> HoldMark | None:
        """What the annotation of a held node says; None where there is none, or one that cannot be read."""
        return _timed(read_note(self.annotation(HOLD_KEY), HoldMark))

    @property
    def is_tainted_by_hold(self) -> bool:
        """Whether the node carries the taint of held nodes."""
        return any(map(_holds, self.taints or ()))

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
    return Wanted([*unmarked(node, keys).taints, *ours], mark.text())


def unmarked(node: MarkedNode, keys: Keys) -> Wanted:
    """Return the node without a mark, whichever run has set it; a taint that only the annotation names keeps that."""
    others = [each for each in node.taints or () if not keys.covers(each)]
    return Wanted(others, node.note if node.claimed(keys) else None)


def without_run(node: MarkedNode, run: str) -> Wanted:
    """Return the node without the mark of this run; the mark of another run stays."""
    kept = [each for each in node.taints or () if not (is_soft(each) and each.get("value") == run)]
    is_own = node.mark is not None and node.mark.run == run
    return Wanted(kept, None if is_own else node.note)


def held(node: MarkedNode, mark: HoldMark) -> Wanted:
    """Return the node held by this mark; one that expires later stays as it is."""
    before = node.hold
    note = node.annotation(HOLD_KEY) if before and before.expires >= mark.expires else mark.text()
    return Wanted([*_unheld(node), {"key": HOLD_KEY, "effect": SOFT}], note, HOLD_KEY)


def _unheld(node: MarkedNode) -> list[Taint]:
    return [each for each in node.taints or () if not _holds(each)]


def _holds(taint: Taint) -> bool:
    return is_soft(taint) and taint.get("key") == HOLD_KEY


def expired(mark: Any) -> bool:
    """Return whether a mark has expired, so that nobody needs it any more."""
    return bool(mark.expires <= datetime.now(UTC))


def any_mark(_: Any) -> bool:
    """Return True for every mark: while we hold the Lease no other run is at work."""
    return True


@dataclass(frozen=True, slots=True)
class KindOfMark:
    """One kind of marks on nodes: how such a mark is found and taken off.

    Attributes:
        read: returns a node's mark; None where there is none, or one that cannot be read.
        is_on: returns whether a node carries such a mark, or a part of one.
        off: returns the node without such a mark.
        is_over: returns whether nobody uses a mark any more; a mark that cannot be read is used by none.
        claim: returns what stays on a node since its annotation alone says that it is ours; empty for nothing.
    """

    read: Callable[[MarkedNode], Any]
    is_on: Callable[[MarkedNode], bool]
    off: Callable[[MarkedNode], Wanted]
    is_over: Callable[[Any], bool]
    claim: Callable[[MarkedNode], str] = lambda _: ""

    def is_in_use(self, node: MarkedNode) -> bool:
        """Return whether a run may still rely on the node's mark."""
        mark = self.read(node)
        return mark is not None and not self.is_over(mark)

    def cleared(self, node: MarkedNode) -> Wanted:
        """Return the node as it should be: without a mark, or unchanged where the mark is in use."""
        return Wanted(node.taints or (), node.note) if self.is_in_use(node) else self.off(node)


def steering_marks(keys: Keys, is_over: Callable[[Mark], bool]) -> KindOfMark:
    """Return the marks of steered runs, by the keys of their taints."""

    def claim(node: MarkedNode) -> str:
        found = [f"{each.get('key')}={each.get('value')}:{SOFT}" for each in node.claimed(keys)]
        return f"node {node.name} keeps {', '.join(found)}, which no run has noted as its own" if found else ""

    return KindOfMark(
        lambda node: node.mark, lambda node: node.is_marked(keys), lambda node: unmarked(node, keys), is_over, claim
    )


def hold_marks(is_over: Callable[[HoldMark], bool]) -> KindOfMark:
    """Return the marks of nodes that are kept empty."""
    return KindOfMark(
        lambda node: node.hold,
        lambda node: node.annotation(HOLD_KEY) is not None or node.is_tainted_by_hold,
        lambda node: Wanted(_unheld(node), None, HOLD_KEY),
        is_over,
    )
