"""Marks of held nodes: what a run writes to a node that it has emptied, so that it stays empty for a while.

    spec.taints           key kube-rebalancer/hold, effect PreferNoSchedule
    metadata.annotations  kube-rebalancer/hold: {"run": "20260115T120000Z-9f3a11c2", "expires": "2026-01-15T12:15:00Z"}

They outlive the run.  Whoever finds one that has expired takes it off: the next live run, or `unmark`.
"""

from datetime import UTC, datetime

import msgspec

from rebalancer.kube.marks import SOFT, MarkedNode, Taint, Wanted, is_soft
from rebalancer.policy.steering import HOLD_KEY


class HoldMark(msgspec.Struct, frozen=True):
    """What the annotation says.

    Attributes:
        run: which run wrote it.
        expires: from when on the taint is of no use any more.
    """

    run: str
    expires: datetime

    def text(self) -> str:
        """Return the annotation's value."""
        until = self.expires.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return msgspec.json.encode({"run": self.run, "expires": until}).decode()


def mark_of(node: MarkedNode) -> HoldMark | None:
    """Return what the annotation says; None where there is none, or one that cannot be read."""
    try:
        mark = msgspec.json.decode(node.annotation(HOLD_KEY) or "", type=HoldMark)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return mark if mark.expires.tzinfo else None


def is_tainted(node: MarkedNode) -> bool:
    """Return whether a node carries the taint."""
    return any(map(_is_ours, node.taints or ()))


def is_held(node: MarkedNode) -> bool:
    """Return whether a node carries the taint or the annotation."""
    return node.annotation(HOLD_KEY) is not None or is_tainted(node)


def held(node: MarkedNode, mark: HoldMark) -> Wanted:
    """Return the node with this mark; one that expires later stays as it is."""
    before = mark_of(node)
    note = node.annotation(HOLD_KEY) if before and before.expires >= mark.expires else mark.text()
    return Wanted([*_others(node), {"key": HOLD_KEY, "effect": SOFT}], note, HOLD_KEY)


def released(node: MarkedNode) -> Wanted:
    """Return the node without such a mark."""
    return Wanted(_others(node), None, HOLD_KEY)


def _others(node: MarkedNode) -> list[Taint]:
    return [each for each in node.taints or () if not _is_ours(each)]


def _is_ours(taint: Taint) -> bool:
    return is_soft(taint) and taint.get("key") == HOLD_KEY
