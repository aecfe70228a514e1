"""Marks of pressure: what `rebalancer mark` writes to a node for as long as it is under pressure.

    metadata.labels       kube-rebalancer/pressure: cpu      (or the label that the rules give, like status=presure)
    spec.taints           key kube-rebalancer/pressure, value cpu, effect PreferNoSchedule    (if the rules give one)
    metadata.annotations  kube-rebalancer/pressure: {"run": "20260115T120000Z-9f3a11c2", "label": "...", "taint": "...",
                              "rules": {"cpu": {"since": "...", "until": "...", "value": 0.93}}}

A label or taint is ours if its key and value are those of the rules or the usual ones.  The annotation names both, so
that they are found after the rules were changed.  But a kubelet may write it: it only counts where the record in the
Lease (`rebalancer.kube.run_record`) says that such a label or taint was ours (`earlier`, as KEY=VALUE).
One of the same key and another value belongs to others and stays.
"""

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime

import msgspec

from rebalancer.errors import ClusterError
from rebalancer.kube.marks import SOFT, MarkedNode, Taint, Wanted, is_soft
from rebalancer.marking.evaluation import Pressure
from rebalancer.marking.rules import Sign, Signs, read_sign
from rebalancer.policy.steering import PRESSURE_KEY

#: The node's annotation, whatever key label and taint have.
ANNOTATION = PRESSURE_KEY
#: What marked nodes carry unless rules say something else; for `unmark`, which knows no rules.
USUAL = Signs(label=Sign(PRESSURE_KEY), taint=Sign(PRESSURE_KEY))


class Occupied(ClusterError):  # noqa: N818  named like the rest of the tree
    """The node has a label or taint of others where ours should be."""


class Shown(msgspec.Struct, frozen=True):
    """One rule in the annotation; see `Pressure`."""

    since: datetime
    until: datetime
    value: float = 0.0


class PressureMark(msgspec.Struct, frozen=True):
    """What the annotation says.

    Attributes:
        run: which run wrote it.
        rules: by name, in the order of the rules' file.
        label: KEY=VALUE of the label; empty for none.
        taint: KEY=VALUE of the soft taint; empty for none.
    """

    run: str
    rules: Mapping[str, Shown]
    label: str = ""
    taint: str = ""

    @property
    def pressures(self) -> tuple[Pressure, ...]:
        """The rules that mark the node."""
        return tuple(Pressure(name, each.since, each.until, each.value) for name, each in self.rules.items())

    @property
    def until(self) -> datetime:
        """When the last of the rules expires."""
        return max(each.until for each in self.rules.values())

    def text(self) -> str:
        """Return the annotation's value."""
        rules = {name: {**_times(each), "value": each.value} for name, each in self.rules.items()}
        fields = {"run": self.run, "rules": rules, "label": self.label, "taint": self.taint}
        return msgspec.json.encode(fields).decode()


def _times(shown: Shown) -> dict[str, str]:
    times = {"since": shown.since, "until": shown.until}
    return {name: each.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for name, each in times.items()}


def mark_of(node: MarkedNode) -> PressureMark | None:
    """Return what the annotation says; None where there is none, or one that cannot be read."""
    try:
        mark = msgspec.json.decode(node.annotation(ANNOTATION) or "", type=PressureMark)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    valid = all(each.since.tzinfo and each.until.tzinfo for each in mark.rules.values())
    return mark if mark.rules and valid else None


def standing(node: MarkedNode) -> tuple[Pressure, ...]:
    """Return the rules that mark a node, expired ones too."""
    mark = mark_of(node)
    return mark.pressures if mark else ()


def is_pressed(node: MarkedNode, signs: Signs, earlier: Collection[str] = ()) -> bool:
    """Return whether a node carries anything of ours."""
    if node.annotation(ANNOTATION) is not None:
        return True
    taints = [each for each in node.taints or () if _is_ours(each, node, signs, earlier)]
    return bool(taints or list(_our_labels(node, signs, earlier)))


def claim(node: MarkedNode, signs: Signs, earlier: Collection[str]) -> str:
    """Return what stays on a node since its annotation alone says that it is ours; empty for nothing."""
    mark = mark_of(node)
    label, taint = (_named(text, [text]) for text in ((mark.label, mark.taint) if mark else ("", "")))
    found = [
        f"the label {key}={value}"
        for key, value in (node.labels or {}).items()
        if label and label.covers(key, value) and key not in _our_labels(node, signs, earlier)
    ]
    found += [
        f"the taint {each.get('key')}={each.get('value')}:{SOFT}"
        for each in node.taints or ()
        if taint and _covers(taint, each) and not _is_ours(each, node, signs, earlier)
    ]
    return f"node {node.name} keeps {', '.join(found)}, which nobody has noted as ours" if found else ""


def cleared(node: MarkedNode, signs: Signs, earlier: Collection[str] = ()) -> Wanted:
    """Return the node without a mark of pressure."""
    taints = [each for each in node.taints or () if not _is_ours(each, node, signs, earlier)]
    note = node.annotation(ANNOTATION) if claim(node, signs, earlier) else None
    return Wanted(taints, note, ANNOTATION, dict.fromkeys(_our_labels(node, signs, earlier)))


def pressed(
    node: MarkedNode, signs: Signs, run: str, pressures: tuple[Pressure, ...], earlier: Collection[str] = ()
) -> Wanted:
    """Return the node with this mark of pressure.

    Raises:
        Occupied: others have set a label or taint of the same key.
    """
    rule = pressures[0].rule
    label, taint = (sign.on(rule) if sign else None for sign in (signs.label, signs.taint))
    before = mark_of(node)
    mark = PressureMark(
        run,
        {each.rule: Shown(each.since, each.until, each.value) for each in pressures},
        str(label or ""),
        str(taint or ""),
    )
    is_same = before and msgspec.structs.replace(before, run=run) == mark and list(before.rules) == list(mark.rules)
    note = node.annotation(ANNOTATION) if is_same else mark.text()
    return Wanted(_taints(node, signs, taint, earlier), note, ANNOTATION, _labels(node, signs, label, earlier))


def _labels(node: MarkedNode, signs: Signs, label: Sign | None, earlier: Collection[str]) -> dict[str, str | None]:
    labels: dict[str, str | None] = dict.fromkeys(_our_labels(node, signs, earlier))
    if label is None:
        return labels
    found = (node.labels or {}).get(label.key)
    if found is not None and label.key not in labels:
        raise Occupied(f"node {node.name} has the label {label.key}={found}, which is not ours: it stays as it is")
    return labels | {label.key: label.value}


def _taints(node: MarkedNode, signs: Signs, taint: Sign | None, earlier: Collection[str]) -> list[Taint]:
    def is_wanted(each: Taint) -> bool:
        return taint is not None and is_soft(each) and (each.get("key"), each.get("value")) == (taint.key, taint.value)

    kept = [each for each in node.taints or () if is_wanted(each) or not _is_ours(each, node, signs, earlier)]
    if taint is None or any(map(is_wanted, kept)):
        return kept
    for each in kept:
        if is_soft(each) and each.get("key") == taint.key:
            found = f"{taint.key}={each.get('value') or ''}:{SOFT}"
            raise Occupied(f"node {node.name} has the taint {found}, which is not ours: it stays as it is")
    return [*kept, {"key": taint.key, "value": taint.value, "effect": SOFT}]


def _our_labels(node: MarkedNode, signs: Signs, earlier: Collection[str]) -> Iterator[str]:
    """Yield the keys of a node's labels that are ours."""
    ours = [signs.label, USUAL.label, _named(mark.label if (mark := mark_of(node)) else "", earlier)]
    for key, value in (node.labels or {}).items():
        if any(sign and sign.covers(key, value) for sign in ours):
            yield key


def _is_ours(taint: Taint, node: MarkedNode, signs: Signs, earlier: Collection[str]) -> bool:
    ours = [signs.taint, USUAL.taint, _named(mark.taint if (mark := mark_of(node)) else "", earlier)]
    return any(sign and _covers(sign, taint) for sign in ours)


def _covers(sign: Sign, taint: Taint) -> bool:
    return is_soft(taint) and sign.covers(str(taint.get("key")), str(taint.get("value") or ""))


def _named(text: str, earlier: Collection[str]) -> Sign | None:
    """Return the label or taint that an annotation names; None if it was never ours."""
    if text not in earlier:
        return None
    try:
        sign = read_sign(text)
    except ValueError:
        return None
    return sign if sign.value else None
