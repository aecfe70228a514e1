"""Nodes that are kept empty, as rows of a table for people."""

from collections.abc import Iterator, Mapping
from typing import Any

#: Titles of the rows.
COLUMNS = ("node", "until", "held")


def held_rows(report: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield a row for each node: its name, until when, and by whom."""
    for node in report["heldNodes"]:
        yield node["name"], node["until"], _by(node, dry_run=report["dryRun"])


def _by(node: Mapping[str, Any], *, dry_run: bool) -> str:
    if node["problem"]:
        return f"not held: {node['problem']}"
    if not node["byThisRun"]:
        return "by an earlier run"
    return "would be held" if dry_run else "by this run"
