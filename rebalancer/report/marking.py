"""The report of `rebalancer mark`, as a document and as a table; the document's keys are an interface."""

from collections.abc import Iterator
from typing import Any

from rebalancer.marking.outcome import MarkingOutcome
from rebalancer.marking.pressure import Pressure
from rebalancer.report.document import timestamp
from rebalancer.untrusted.printable import printable

_HEAD = ("node", "rule", "value", "since", "until", "change")


def marking_document(outcome: MarkingOutcome) -> dict[str, Any]:
    """Return the report of an evaluation."""
    return {
        "apiVersion": "rebalancer/v1",
        "kind": "Marking",
        "dryRun": outcome.dry_run,
        "now": timestamp(outcome.now),
        "cluster": dict(outcome.cluster),
        "run": outcome.run,
        "skipped": outcome.skipped,
        "takingPart": outcome.nodes,
        "rules": [_rule(outcome, name) for name in (outcome.rules.rules if outcome.rules else ())],
        "nodes": node_documents(outcome),
        "leftOut": list(outcome.evaluation.left_out),
        "allPressed": outcome.evaluation.all_pressed,
        "warnings": list(outcome.warnings),
    }


def node_documents(outcome: MarkingOutcome) -> list[dict[str, Any]]:
    """Return a document for each node that carries a mark or should, or was cleared."""
    marks = outcome.evaluation.marks
    return [
        {
            "name": node,
            "change": outcome.changes.get(node, ""),
            "problem": outcome.problems.get(node, ""),
            "rules": [_pressure(outcome, node, each) for each in marks.get(node, ())],
        }
        for node in sorted({*marks, *outcome.changes, *outcome.problems})
    ]


def _rule(outcome: MarkingOutcome, name: str) -> dict[str, Any]:
    answer = outcome.answers[name]
    return {
        "name": name,
        "nodes": len(answer.readings),
        "problem": outcome.evaluation.unknown.get(name, ""),
        "missing": dict(sorted(answer.missing.items())),
    }


def _pressure(outcome: MarkingOutcome, node: str, pressure: Pressure) -> dict[str, Any]:
    answer = outcome.answers.get(pressure.rule)
    reading = answer.readings.get(node) if answer else None
    return {
        "name": pressure.rule,
        "since": timestamp(pressure.since),
        "until": timestamp(pressure.until),
        "value": reading.value if reading else pressure.value,
    }


def marking_lines(document: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the report for a person."""
    if document["skipped"]:
        yield f"nothing was evaluated: {document['skipped']}"
        return
    marked = [each for each in document["nodes"] if each["rules"] and not each["problem"]]
    would = "would be marked" if document["dryRun"] else "marked"
    yield f"{len(marked)} of {document['takingPart']} nodes {would}"
    yield from _table([_HEAD, *(row for node in document["nodes"] for row in _rows(node))])
    if document["allPressed"]:
        yield "all nodes are under pressure, so none is marked"
    if document["leftOut"]:
        yield f"under pressure too, and left out by maxNodes: {', '.join(map(printable, document['leftOut']))}"
    for rule in document["rules"]:
        if rule["problem"]:
            yield f"rule {rule['name']} is not known, so its marks stay until they expire: {printable(rule['problem'])}"
    yield from (f"node {printable(each['name'])}: {printable(each['problem'])}" for each in _problems(document))
    yield from (f"warning: {printable(each)}" for each in document["warnings"])


def _problems(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return (each for each in document["nodes"] if each["problem"])


def _rows(node: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    change = "not changed" if node["problem"] else node["change"] or "kept"
    for rule in node["rules"]:
        yield printable(node["name"]), rule["name"], f"{rule['value']:.4g}", rule["since"], rule["until"], change
    if not node["rules"]:
        yield printable(node["name"]), "-", "-", "-", "-", change


def _table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Yield rows in columns; nothing where there is only the head."""
    if len(rows) == 1:
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
