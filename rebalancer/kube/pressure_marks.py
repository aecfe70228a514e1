"""Marks of pressure: what `rebalancer mark` writes to a node for as long as it is under pressure.

    metadata.labels       kube-rebalancer/pressure: cpu      (or the label that the rules give, like status=presure)
    spec.taints           key kube-rebalancer/pressure, value cpu, effect PreferNoSchedule    (if the rules give one)
    metadata.annotations  kube-rebalancer/pressure: {"run": "20260115T120000Z-9f3a11c2", "label": "...", "taint": "...",
                              "rules": {"cpu": {"since": "...", "until": "...", "value": 0.93}}}

A label or taint is ours if its key and value are those of the rules or the usual ones.  A kubelet may write the
annotation: what it names is ours where the record in the Lease (`rebalancer.kube.run_marks`) says that it was earlier,
as KEY=VALUE.  One of the same key and another value belongs to others and stays.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import msgspec

from rebalancer.errors import ClusterError
from rebalancer.kube.marks import SOFT, KindOfMark, MarkedNode, Note, Taint, Wanted, is_soft, spelled
from rebalancer.kube.wire.annotations import Zoned
from rebalancer.marking.evaluation import Pressure
from rebalancer.marking.rules import Sign, Signs, read_sign
from rebalancer.policy.moving import PRESSURE_KEY

#: What marked nodes carry unless rules say something else; for `unmark`, which knows no rules.
USUAL = Signs(label=Sign(PRESSURE_KEY), taint=Sign(PRESSURE_KEY))


class Occupied(ClusterError):  # noqa: N818  named like the rest of the tree
    """The node has a label or taint of others where ours should be."""


class Shown(msgspec.Struct, frozen=True):
    """One rule in the annotation; see `Pressure`."""

    since: Zoned
    until: Zoned
    value: float = 0.0


class PressureMark(Note, frozen=True):
    """What the annotation says: rules in the order of their file, and label and soft taint as KEY=VALUE, or empty."""

    run: str
    rules: Annotated[Mapping[str, Shown], msgspec.Meta(min_length=1)]
    label: str = ""
    taint: str = ""

    @property
    def pressures(self) -> tuple[Pressure, ...]:
        """The rules that mark the node."""
        return tuple(Pressure(name, each.since, each.until, each.value) for name, each in self.rules.items())

    @property
    def expires(self) -> datetime:
        """When the last of the rules expires."""
        return max(each.until for each in self.rules.values())


@dataclass(frozen=True, slots=True)
class PressureMarks(KindOfMark[PressureMark]):
    """The marks of `rebalancer mark`, by the signs in force, and those that the record says were ours earlier."""

    annotation = PRESSURE_KEY
    form = PressureMark

    signs: Signs
    earlier: Collection[str] = ()

    def taints(self, node: MarkedNode) -> list[Taint]:
        """Return a node's taints that are ours: the rules', the usual ones, and what was ours by the record."""
        ours = self._ours(node, "taint")
        return [each for each in node.taints or () if any(_covers(sign, each) for sign in ours)]

    def labels(self, node: MarkedNode) -> list[str]:
        """Return the keys of a node's labels that are ours in the same way."""
        ours = self._ours(node, "label")
        return [key for key, value in (node.labels or {}).items() if any(each.covers(key, value) for each in ours)]

    def _ours(self, node: MarkedNode, form: str) -> list[Sign]:
        noted = getattr(self.read(node), form, "")
        named = _named(noted) if noted in self.earlier else None
        return [each for each in (getattr(self.signs, form), getattr(USUAL, form), named) if each]

    def claimed(self, node: MarkedNode) -> list[str]:
        """Return the labels and taints that the annotation names, and neither the rules nor the record."""
        mark, ours = self.read(node), self.labels(node)
        label, taint = (_named(mark.label), _named(mark.taint)) if mark else (None, None)
        labels = [(key, value) for key, value in (node.labels or {}).items() if label and label.covers(key, value)]
        taints = [each for each in self.others(node) if taint and _covers(taint, each)]
        found = [f"the label {key}={value}" for key, value in labels if key not in ours]
        return found + [f"the taint {spelled(each)}" for each in taints]

    def on(self, node: MarkedNode, run: str, pressures: tuple[Pressure, ...]) -> Wanted:
        """Return the node with this mark; raise `Occupied` if others have set a label or taint of the same key."""
        rule = pressures[0].rule
        label, taint = (sign.on(rule) if sign else None for sign in (self.signs.label, self.signs.taint))
        before = self.read(node)
        rules = {each.rule: Shown(each.since, each.until, each.value) for each in pressures}
        mark = PressureMark(run, rules, str(label or ""), str(taint or ""))
        is_same = before and msgspec.structs.replace(before, run=run) == mark and list(before.rules) == list(mark.rules)
        note = node.annotation(PRESSURE_KEY) if is_same else mark.text()
        return Wanted(self._tainted(node, taint), {PRESSURE_KEY: note}, self._labelled(node, label))

    def _labelled(self, node: MarkedNode, label: Sign | None) -> dict[str, str | None]:
        labels: dict[str, str | None] = dict.fromkeys(self.labels(node))
        if label is None:
            return labels
        found = (node.labels or {}).get(label.key)
        if found is not None and label.key not in labels:
            raise Occupied(f"node {node.name} has the label {label.key}={found}, which is not ours: it stays as it is")
        return labels | {label.key: label.value}

    def _tainted(self, node: MarkedNode, taint: Sign | None) -> list[Taint]:
        others = self.others(node)
        same = [each for each in self.taints(node) if taint and _covers(taint, each)]
        kept = [each for each in node.taints or () if each in others or each in same]
        if taint is None or same:
            return kept
        for each in others:
            if is_soft(each) and each.get("key") == taint.key:
                raise Occupied(f"node {node.name} has the taint {spelled(each)}, which is not ours: it stays as it is")
        return [*kept, {"key": taint.key, "value": taint.value, "effect": SOFT}]


def standing(node: MarkedNode) -> tuple[Pressure, ...]:
    """Return the rules that mark a node, expired ones too."""
    mark = PressureMarks.read(node)
    return mark.pressures if mark else ()


def _covers(sign: Sign, taint: Taint) -> bool:
    return is_soft(taint) and sign.covers(str(taint.get("key")), str(taint.get("value") or ""))


def _named(text: str) -> Sign | None:
    try:
        sign = read_sign(text)
    except ValueError:
        return None
    return sign if sign.value else None
