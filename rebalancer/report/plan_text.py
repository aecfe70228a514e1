"""A plan, and the difference of two plans, for people: a table, and Markdown for a pull request."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rebalancer.report.plan import Plan, PlannedMove
from rebalancer.untrusted.printable import printable

_MOST = 50


def markdown(plan: Plan) -> Iterator[str]:
    """Yield the lines of a summary for the description of a pull request."""
    yield f"### Plan: {_pods(len(plan.moves))} to evict"
    yield ""
    yield f"Policy `{_cell(plan.policy.name)}` (`{plan.policy.hash[:19]}`), cluster as of {plan.created.isoformat()}."
    yield ""
    if plan.moves:
        yield "| pod | from | likely to | strategy | why |"
        yield "|---|---|---|---|---|"
    for move in plan.moves[:_MOST]:
        cells = (str(move), move.node, _landing(move), move.strategy, move.reason)
        yield f"| {' | '.join(map(_cell, cells))} |"
    if len(plan.moves) > _MOST:
        yield f"\nand {len(plan.moves) - _MOST} more."
    for warning in plan.warnings:
        yield f"\n> {_cell(warning)}"


def _landing(move: PlannedMove) -> str:
    return ", ".join(move.destination.nodes[:3]) if move.destination else ""


def _cell(text: str) -> str:
    """Return a text as a cell of a table: names and reasons are what others wrote."""
    safe = printable(text).replace("\\", "\\\\")
    for sign in "|`*_<>[]":
        safe = safe.replace(sign, f"\\{sign}")
    return safe


def _pods(number: int) -> str:
    return f"{number} pod{'' if number == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """What tells two plans apart.

    Attributes:
        only_first: moves of the first plan alone, in its order.
        only_second: moves of the second alone.
        elsewhere: moves of both, whose replacements are expected on other nodes; as in the first and in the second.
        nodes: by name, how full a node is in the end, by resource, in the first and in the second.
    """

    only_first: tuple[PlannedMove, ...]
    only_second: tuple[PlannedMove, ...]
    elsewhere: tuple[tuple[PlannedMove, PlannedMove], ...]
    nodes: Mapping[str, tuple[Mapping[str, float | None], Mapping[str, float | None]]]

    @property
    def is_empty(self) -> bool:
        """Whether the moves are the same."""
        return not (self.only_first or self.only_second or self.elsewhere)

    def document(self) -> dict[str, Any]:
        """Return the difference as plain values."""
        return {
            "apiVersion": "rebalancer/v1",
            "kind": "PlanDifference",
            "onlyFirst": [each.model_dump(mode="json", by_alias=True) for each in self.only_first],
            "onlySecond": [each.model_dump(mode="json", by_alias=True) for each in self.only_second],
            "elsewhere": [
                {
                    "namespace": one.namespace,
                    "name": one.name,
                    "uid": one.uid,
                    "first": _nodes(one),
                    "second": _nodes(two),
                }
                for one, two in self.elsewhere
            ],
            "nodes": [
                {"name": name, "first": dict(first), "second": dict(second)}
                for name, (first, second) in self.nodes.items()
            ],
        }

    def lines(self) -> Iterator[str]:
        """Yield the difference for people."""
        if self.is_empty:
            yield "The two plans make the same moves."
        for sign, moves in (("-", self.only_first), ("+", self.only_second)):
            for move in moves:
                yield f"{sign} {move}  {move.node} -> {_landing(move) or '?'}  {move.strategy}: {move.reason}"
        for one, two in self.elsewhere:
            yield f"~ {one}  {one.node} -> {_landing(one) or '?'}, then {_landing(two) or '?'}"
        changed = {name: pair for name, pair in self.nodes.items() if pair[0] != pair[1]}
        for name, (first, second) in changed.items():
            yield f"  {name}: {_full(first)} in the end, then {_full(second)}"


def _nodes(move: PlannedMove) -> list[str]:
    return list(move.destination.nodes) if move.destination else []


def _full(shares: Mapping[str, float | None]) -> str:
    return ", ".join(f"{name} {share:.0f} %" for name, share in shares.items() if share is not None) or "unknown"


def difference(first: Plan, second: Plan) -> PlanDifference:
    """Return what tells two plans apart; pods are the same by UID."""
    one, two = _by_uid(first.moves), _by_uid(second.moves)
    pairs = [(move, two[uid]) for uid, move in one.items() if uid in two]
    ends = ({node.name: node.after for node in plan.nodes} for plan in (first, second))
    before, after = ends
    return PlanDifference(
        tuple(move for uid, move in one.items() if uid not in two),
        tuple(move for uid, move in two.items() if uid not in one),
        tuple(pair for pair in pairs if _nodes(pair[0]) != _nodes(pair[1])),
        {name: (before.get(name, {}), after.get(name, {})) for name in sorted({*before, *after})},
    )


def _by_uid(moves: Sequence[PlannedMove]) -> dict[str, PlannedMove]:
    return {move.uid: move for move in moves}
