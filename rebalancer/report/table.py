"""The report for a person: what moves and why, then what does not and why not."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import IO, Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rebalancer.report.document import CLOCKS

_PLAIN_WIDTH = 200
_REFUSALS_SHOWN = 20


def print_table(report: Mapping[str, Any], stream: IO[str], *, everything: bool = False) -> None:
    """Print a report; plain and wide where the stream is no terminal.

    Args:
        report: as `rebalancer.report.document` makes it.
        stream: where to.
        everything: list every refusal instead of the first ones of each cause.
    """
    terminal = stream.isatty()
    console = Console(file=stream, width=None if terminal else _PLAIN_WIDTH, highlight=False, soft_wrap=not terminal)
    _print_head(console, report)
    _print_totals(console, report)
    _print_evictions(console, report)
    _print_refusals(console, report, everything=everything)
    _print_trouble(console, report)


def _print_head(console: Console, report: Mapping[str, Any]) -> None:
    cluster = report["cluster"]
    where = cluster.get("file") or f"{cluster['context'] or 'this cluster'} ({cluster['server']})"
    kind = "Dry run on" if report["dryRun"] else "Live run on"
    console.print(Text(f"{kind} {where}", style="bold"))
    nodes = report["nodes"]
    console.print(
        f"{nodes['considered']} of {nodes['total']} nodes considered, at {report['now']} ({CLOCKS[report['clock']]})"
    )
    if report["skipped"]:
        console.print(Text(f"Nothing was done: {report['skipped']}", style="yellow"))
        return
    moved = len(report["evictions"])
    verb = ("would be evicted" if report["dryRun"] else "evicted") if moved else ("to evict")
    count = f"{moved} pod{'s' if moved != 1 else ''}" if moved else "No pods"
    console.print(Text(f"{count} {verb}, {len(report['refusals'])} refused", style="bold green" if moved else "bold"))
    console.print()


def _table(*columns: str, title: str = "") -> Table:
    table = Table(box=SIMPLE, title=title or None, title_justify="left", title_style="bold", pad_edge=False)
    for column in columns:
        right = column in ("evicted", "refused", "pods")
        table.add_column(column, justify="right" if right else "left", overflow="fold", no_wrap=right)
    return table


def _print_totals(console: Console, report: Mapping[str, Any]) -> None:
    if not report["strategies"]:
        return
    table = _table("profile", "strategy", "evicted", "refused", "error")
    for run in report["strategies"]:
        table.add_row(run["profile"], run["strategy"], str(run["evicted"]), str(run["refused"]), run["error"] or "")
    console.print(table)
    if report["evictions"]:
        console.print(_by_node(report["evictions"]))


def _by_node(evictions: Iterable[Mapping[str, Any]]) -> Table:
    table = _table("from node", "pods")
    counts = Counter(each["node"] for each in evictions)
    for node, count in sorted(counts.items(), key=lambda each: (-each[1], each[0])):
        table.add_row(node, str(count))
    return table


def _print_evictions(console: Console, report: Mapping[str, Any]) -> None:
    if not report["evictions"]:
        return
    table = _table("pod", "node", "owner", "strategy", "because", title="Pods that go")
    for each in report["evictions"]:
        owner = each["owner"]
        table.add_row(
            f"{each['namespace']}/{each['name']}",
            each["node"],
            f"{owner['kind']}/{owner['name']}" if owner else "",
            each["strategy"],
            each["reason"],
        )
    console.print(table)


def _print_refusals(console: Console, report: Mapping[str, Any], *, everything: bool) -> None:
    refusals = report["refusals"]
    if not refusals:
        return
    causes = Counter(each["by"] for each in refusals)
    summary = ", ".join(f"{by} {count}" for by, count in sorted(causes.items(), key=lambda each: (-each[1], each[0])))
    shown = refusals if everything else refusals[:_REFUSALS_SHOWN]
    table = _table("pod", "node", "strategy", "by", "reason", title=f"Pods that were asked for and stay: {summary}")
    for each in shown:
        table.add_row(f"{each['namespace']}/{each['name']}", each["node"], each["strategy"], each["by"], each["reason"])
    console.print(table)
    if len(shown) < len(refusals):
        console.print(f"and {len(refusals) - len(shown)} more: -v 1 or --output json lists them all")


def _print_trouble(console: Console, report: Mapping[str, Any]) -> None:
    for failure in report["failures"]:
        where = f"{failure['namespace']}/{failure['name']} on {failure['node']}"
        console.print(Text(f"Failed: {where} ({failure['strategy']}): {failure['error']}", style="red"))
    for warning in report["warnings"]:
        console.print(Text(f"Warning: {warning}", style="yellow"))
