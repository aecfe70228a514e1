"""What `/status` and `/nodes` show of marks: as documents for programs, as tables for a browser.

Everybody who reaches the port may read them: they say that a source or a node is in trouble, and leave to the log what
servers said of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from rebalancer.marking.outcome import MarkingOutcome
from rebalancer.report.document import timestamp
from rebalancer.report.headline import count
from rebalancer.report.marking import node_documents

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem; color: #1a1a1a; background: #fff; }
table { border-collapse: collapse; } th, td { text-align: left; padding: .3rem 1.2rem .3rem 0; }
th { border-bottom: 2px solid #888; } td { border-bottom: 1px solid #ddd; }
@media (prefers-color-scheme: dark) { body { color: #eee; background: #181818; } td { border-color: #444; } }
"""
_IN_THE_LOG = "the log says why"
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
    """Return health, the last evaluation and what the sources say.

    Args:
        outcome: of the last evaluation; None where there was none.
        alive: the checks of `/healthz`, by name; empty where one passed.
        ready: the checks of `/readyz`.
    """
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
    marked = f"{count(document['count'], 'node')} marked"
    return _page("Nodes under pressure", f"{marked}, evaluated {document['evaluated'] or 'never'}", _NODE_HEAD, rows)


def status_html(document: Mapping[str, Any]) -> str:
    """Return the status as a page."""
    rows = [(f"check {name}", problem or "ok") for name, problem in document["checks"].items()]
    evaluation = document["evaluation"] or {"time": "never", "rules": {}}
    rows += [(key, str(value)) for key, value in evaluation.items() if key != "rules"]
    rows += [(f"rule {name}", problem or "known") for name, problem in evaluation["rules"].items()]
    said = "ready" if document["ready"] else "not ready"
    return _page("Marking", f"{'healthy' if document['healthy'] else 'not healthy'}, {said}", ("what", "state"), rows)


def _page(title: str, text: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    body = "".join(_row("td", row) for row in rows)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head>\n<body><h1>{escape(title)}</h1>\n<p>{escape(text)}</p>\n"
        f"<table><thead>{_row('th', head)}</thead>\n<tbody>{body}</tbody></table></body></html>\n"
    )


def _row(cell: str, texts: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{cell}>{escape(text)}</{cell}>' for text in texts)}</tr>\n"
