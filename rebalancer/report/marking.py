"""The report of `rebalancer mark`, as a document and as a table; the document's keys are an interface.

Everybody who reaches the port may read them: they say that a source or a node is in trouble, and leave to the log what
servers said of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rebalancer.marking.evaluation import MarkingOutcome, Pressure
from rebalancer.report.document import timestamp
from rebalancer.report.layout import Page, count
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
    if rows := [row for node in document["nodes"] for row in _rows(node)]:
        page = Page(None)
        page.rows([_HEAD, *rows])
        yield from (line for line, _ in page.lines)
    if document["allPressed"]:
        yield "all nodes are under pressure, so none is marked"
    if document["leftOut"]:
        yield f"under pressure too, and left out by maxNodes: {', '.join(map(printable, document['leftOut']))}"
    for rule in document["rules"]:
        if rule["problem"]:
            yield f"rule {rule['name']} is not known, so its marks stay until they expire: {printable(rule['problem'])}"
    for node in document["nodes"]:
        if node["problem"]:
            yield f"node {printable(node['name'])}: {printable(node['problem'])}"
    yield from (f"warning: {printable(each)}" for each in document["warnings"])


def _rows(node: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    change = "not changed" if node["problem"] else node["change"] or "kept"
    for rule in node["rules"]:
        yield node["name"], rule["name"], f"{rule['value']:.4g}", rule["since"], rule["until"], change
    if not node["rules"]:
        yield node["name"], "-", "-", "-", "-", change


_IN_THE_LOG = "the log says why"
_UNITS = "in percent for a resource, and in the unit of the query for a rule with one."
#: What the page says of an evaluation, by key of the document.
_SAID = {
    "time": "evaluated",
    "run": "run",
    "dryRun": "dry run",
    "skipped": "skipped",
    "takingPart": "nodes that take part",
    "marked": "nodes marked",
    "leftOut": "left out, since no more may be marked",
    "allPressed": "all nodes under pressure",
}
_NODE_HEAD = ("node", "rule", "value", "since", "until", "problem")


def nodes_document(outcome: MarkingOutcome | None) -> dict[str, Any]:
    """Return the nodes with marks as the last evaluation left them; `evaluated` is null where there was none."""
    nodes = [each for each in node_documents(outcome) if each["rules"]] if outcome else []
    nodes = [{**each, "problem": _IN_THE_LOG if each["problem"] else ""} for each in nodes]
    return {
        "evaluated": timestamp(outcome.now) if outcome else None,
        "count": len(nodes),
        "nodes": [{key: each[key] for key in ("name", "rules", "problem")} for each in nodes],
    }


def status_document(
    outcome: MarkingOutcome | None, alive: Mapping[str, str], ready: Mapping[str, str]
) -> dict[str, Any]:
    """Return health, checks of `/healthz` and `/readyz` by name (empty if passed), and the last evaluation."""
    return {
        "healthy": not any(alive.values()),
        "ready": not any(ready.values()),
        "checks": {**alive, **ready},
        "evaluation": _evaluation(outcome) if outcome else None,
    }


def _evaluation(outcome: MarkingOutcome) -> dict[str, Any]:
    return {
        "time": timestamp(outcome.now),
        "run": outcome.run,
        "dryRun": outcome.dry_run,
        "skipped": outcome.skipped,
        "takingPart": outcome.nodes,
        "marked": len(outcome.evaluation.marks),
        "leftOut": list(outcome.evaluation.left_out),
        "allPressed": outcome.evaluation.all_pressed,
        "rules": {name: _IN_THE_LOG if name in outcome.evaluation.unknown else "" for name in outcome.answers},
    }


def nodes_html(document: Mapping[str, Any]) -> str:
    """Return the nodes as a page."""
    rows = [
        (node["name"], rule["name"], f"{rule['value']:.4g}", rule["since"], rule["until"], node["problem"])
        for node in document["nodes"]
        for rule in node["rules"]
    ]
    marked = f"{count(document['count'], 'node')}, evaluated {document['evaluated'] or 'never'}"
    return _page("Nodes under pressure", [("marked", marked), ("values", _UNITS)], _NODE_HEAD, rows)


def status_html(document: Mapping[str, Any]) -> str:
    """Return the status as a page."""
    rows = [(f"check {name}", problem or "ok") for name, problem in document["checks"].items()]
    evaluation = document["evaluation"] or {"time": "never", "rules": {}}
    rows += [(_SAID[key], _state(value)) for key, value in evaluation.items() if key != "rules"]
    rows += [(f"rule {name}", problem or "known") for name, problem in evaluation["rules"].items()]
    return _page("Marking", [(key, _state(document[key])) for key in ("healthy", "ready")], ("what", "state"), rows)


def _state(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(value) or "none"
    if value is True:
        return "yes"
    return "no" if value is False or value in ("", None) else str(value)


def _page(title: str, head: Sequence[tuple[str, str]], columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    from rebalancer.report.page import rendered  # noqa: PLC0415  templates: only where asked

    return rendered(title=title, head=head, tables=[("Now", columns, rows)])
