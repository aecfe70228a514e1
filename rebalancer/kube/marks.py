"""Marks of steered runs, which make kube-scheduler prefer other nodes for a while, and of nodes that are held empty.

A mark of steering is one or two soft taints (effect PreferNoSchedule) and an annotation:

    metadata.annotations  kube-rebalancer/avoid: {"run": "20260115T120000Z-9f3a11c2",
                                                  "keys": ["kube-rebalancer/avoid", "kube-rebalancer/avoid-more"],
                                                  "expires": "2026-01-15T12:07:00Z"}
    spec.taints           key kube-rebalancer/avoid, value the run, effect PreferNoSchedule; the same with ...-more

Two taints need two keys: each pair of key and effect is unique on a node.  A kubelet may write the annotation, so it
makes no taint ours: that do the usual keys, those of the policy, and a value that is a run of the record
(`rebalancer.kube.run_marks`).  A taint that the annotation alone names stays, and is told.

A node that a run has emptied is held, so that it stays empty for a while:

    spec.taints           key kube-rebalancer/hold, effect PreferNoSchedule
    metadata.annotations  kube-rebalancer/hold: {"run": "20260115T120000Z-9f3a11c2", "expires": "2026-01-15T12:15:00Z"}

These outlive the run.  Whoever finds one that has expired takes it off: the next live run, or `unmark`.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import msgspec

from rebalancer.kube.wire.annotations import Zoned, read_note
from rebalancer.policy.moving import AVOID_KEY, HOLD_KEY, avoid_keys

#: Steering's annotation, whatever keys the taints have: so a mark is found after these were changed.
ANNOTATION = "kube-rebalancer/avoid"
SOFT = "PreferNoSchedule"
_USUAL = avoid_keys(AVOID_KEY)
Taint: TypeAlias = Mapping[str, Any]  # A taint as the API server writes it; taints of others are written back unchanged


def in_utc(time: datetime) -> str:
    """Return a time as annotations have it, in whole seconds."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_soft(taint: Taint) -> bool:
    """Return whether a taint has the effect PreferNoSchedule, like ours."""
    return taint.get("effect") == SOFT


def spelled(taint: Taint) -> str:
    """Return a soft taint as kubectl spells it."""
    return f"{taint.get('key')}={taint.get('value') or ''}:{SOFT}"


class Note(msgspec.Struct, frozen=True):
    """What an annotation of ours says; one with a time that UTC does not have cannot be read."""

    def __post_init__(self) -> None:
        self.text()

    def text(self) -> str:
        """Return it as the annotation has it."""
        plain = msgspec.to_builtins(self, builtin_types=(datetime,))
        return json.dumps(plain, default=in_utc, separators=(",", ":"), ensure_ascii=False)


class HoldMark(Note, frozen=True):
    """Who holds a node, and from when on the taint is of no use any more."""

    run: str
    expires: Zoned


class Mark(Note, frozen=True):
    """Which run steering's taints belong to; it is also the value of each taint."""

    run: str
    keys: tuple[str, ...]
    expires: Zoned


@dataclass(frozen=True, slots=True)
class MarkedNode:
    """The parts of a node that concern marks; the taints are as the API server has them."""

    name: str
    uid: str
    taints: Sequence[Taint] | None
    annotations: Mapping[str, str] | None
    labels: Mapping[str, str] | None = None

    def annotation(self, key: str) -> str | None:
        """Return the value of an annotation; None where there is none."""
        return (self.annotations or {}).get(key)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A node's taints, and our annotations and labels as they should be; None for one that should not be there."""

    taints: Sequence[Taint]
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    labels: Mapping[str, str | None] = field(default_factory=dict)


MarkT = TypeVar("MarkT", bound=Any)


class KindOfMark(ABC, Generic[MarkT]):
    """One kind of marks on nodes: an annotation, read as a form, and the soft taints and labels that go with it."""

    annotation: ClassVar[str]
    form: ClassVar[type[Any]]
    nobody: ClassVar[str] = "nobody has noted as ours"  # what is ours by the annotation alone

    @classmethod
    def read(cls, node: MarkedNode) -> MarkT | None:
        """Return a node's mark; None if there is none, or if it cannot be read: such a mark belongs to no run."""
        return read_note(node.annotation(cls.annotation), cls.form)

    @abstractmethod
    def taints(self, node: MarkedNode) -> list[Taint]:
        """Return the taints of a node that are ours, no matter which run has set them."""

    def labels(self, _node: MarkedNode) -> list[str]:
        """Return the keys of a node's labels that are ours."""
        return []

    def claimed(self, _node: MarkedNode) -> list[str]:
        """Return in words what is ours by the annotation alone."""
        return []

    def others(self, node: MarkedNode) -> list[Taint]:
        """Return a node's taints that are not ours."""
        ours = self.taints(node)
        return [each for each in node.taints or () if each not in ours]

    def is_on(self, node: MarkedNode) -> bool:
        """Return whether there is an annotation, a label or a taint of ours."""
        return bool(node.annotation(self.annotation) is not None or self.taints(node) or self.labels(node))

    def claim(self, node: MarkedNode) -> str:
        """Return a warning of what stays on a node since it is ours by the annotation alone; empty if nothing does."""
        found = self.claimed(node)
        return f"node {node.name} keeps {', '.join(found)}, which {self.nobody}" if found else ""

    def off(self, node: MarkedNode) -> Wanted:
        """Return the node without such a mark, of any run; the annotation stays if something is ours by it alone."""
        note = node.annotation(self.annotation) if self.claimed(node) else None
        return Wanted(self.others(node), {self.annotation: note}, dict.fromkeys(self.labels(node)))


@dataclass(frozen=True, slots=True)
class SteeringMarks(KindOfMark[Mark]):
    """The marks of steered runs: a first key for every node, a second for hot ones; taints of `runs` are ours too."""

    annotation = ANNOTATION
    form = Mark
    nobody = "no run has noted as its own"

    first: str
    second: str
    runs: frozenset[str] = frozenset()

    @classmethod
    def of(cls, key: str, noted: Iterable[Mark] | None = None) -> "SteeringMarks":
        """Return the marks whose keys are made from the configured one, with those of the runs that are noted."""
        return cls(*avoid_keys(key), frozenset(each.run for each in noted or ()))

    def at(self, level: int) -> tuple[str, ...]:
        """Return the keys of the taints that a node carries at a level: none at 0, one at 1, both at 2."""
        return (self.first, self.second)[:level]

    def taints(self, node: MarkedNode) -> list[Taint]:
        """Return the soft taints of our keys, the usual ones and those of runs that are noted."""
        keys = (self.first, self.second, *_USUAL)
        soft = filter(is_soft, node.taints or ())
        return [each for each in soft if each.get("key") in keys or each.get("value") in self.runs]

    def claimed(self, node: MarkedNode) -> list[str]:
        """Return the taints of its own run that the annotation names, and nothing else."""
        mark = self.read(node)
        if mark is None:
            return []
        named = [each for each in self.others(node) if each.get("key") in mark.keys and each.get("value") == mark.run]
        return [spelled(each) for each in named if is_soft(each)]

    def on(self, node: MarkedNode, mark: Mark) -> Wanted:
        """Return the node with this mark, and without any other; the taints of others keep their order."""
        ours = [{"key": key, "value": mark.run, "effect": SOFT} for key in mark.keys]
        return Wanted([*self.others(node), *ours], {ANNOTATION: mark.text()})


def without_run(node: MarkedNode, run: str) -> Wanted:
    """Return the node without the mark of this steered run; the mark of another run stays."""
    kept = [each for each in node.taints or () if not (is_soft(each) and each.get("value") == run)]
    mark = SteeringMarks.read(node)
    return Wanted(kept, {ANNOTATION: None if mark and mark.run == run else node.annotation(ANNOTATION)})


class HoldMarks(KindOfMark[HoldMark]):
    """The marks of nodes that are kept empty."""

    annotation = HOLD_KEY
    form = HoldMark

    def taints(self, node: MarkedNode) -> list[Taint]:
        """Return the taint of held nodes, if there is one."""
        return [each for each in node.taints or () if is_soft(each) and each.get("key") == HOLD_KEY]

    def on(self, node: MarkedNode, mark: HoldMark) -> Wanted:
        """Return the node held by this mark; one that expires later stays as it is."""
        before = self.read(node)
        note = node.annotation(HOLD_KEY) if before and before.expires >= mark.expires else mark.text()
        return Wanted([*self.others(node), {"key": HOLD_KEY, "effect": SOFT}], {HOLD_KEY: note})


def expired(mark: Any) -> bool:
    """Return whether a mark has expired, so that nobody needs it any more."""
    return bool(mark.expires <= datetime.now(UTC))


def any_mark(_: Any) -> bool:
    """Return True for every mark: while we hold the Lease no other run is at work."""
    return True
