"""The report for a person: what moves and why, then what does not and why not."""

from collections import Counter
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import IO, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rebalancer.foreign.printable import printable
from rebalancer.report.document import CLOCKS

_PLAIN_WIDTH = 500
_PODS_SHOWN = 3

Report = Mapping[str, Any]
Row = Mapping[str, Any]


def print_table(report: Report, stream: IO[str], *, everything: bool = False) -> None:
    """Print a report; plain and wide where the stream is no terminal.

    Args:
        report: as `rebalancer.report.document` makes it.
        stream: where to.
        everything: list every refused pod instead of naming the first ones of each cause.
    """
    report = _printable(report)
    if stream.isatty():
        console = Console(file=stream, highlight=False)
        with console.capture() as printed:  # or rich would end the program itself where nobody reads
            _print_all(console, report, everything=everything)
        stream.write(printed.get())
        return
    plain = StringIO()
    _print_all(Console(file=plain, width=_PLAIN_WIDTH, highlight=False, soft_wrap=True), report, everything=everything)
    stream.writelines(f"{line.rstrip()}\n" for line in plain.getvalue().splitlines())


def _print_all(console: Console, report: Report, *, everything: bool) -> None:
    _print_head(console, report)
    _print_totals(console, report)
    _print_evictions(console, report["evictions"])
    _print_doubts(console, report["unknown"])
    _print_refusals(console, report["refusals"], everything=everything)
    _print_trouble(console, report)


def _printable(value: Any) -> Any:
    """Return a document whose texts are safe to print: some were written by whoever owns a pod."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {key: _printable(each) for key, each in value.items()}
    return [_printable(each) for each in value] if isinstance(value, list) else value


def _print_head(console: Console, report: Report) -> None:
    cluster, nodes = report["cluster"], report["nodes"]
    where = cluster.get("file") or f"{cluster['context'] or 'this cluster'} ({cluster['server']})"
    clock = f"at {report['now']} ({CLOCKS[report['clock']]})"
    console.print(Text(f"{'Dry run' if report['dryRun'] else 'Live run'} on {where}, {clock}", style="bold"))
    if report["skipped"]:
        console.print(Text(f"Nothing was done: {report['skipped']}", style="yellow"))
        return
    moved, refused = len(report["evictions"]), len(report["refusals"])
    verb = "would be evicted" if report["dryRun"] else "evicted"
    doubts = f", {len(report['unknown'])} unknown" if report["unknown"] else ""
    considered = f"{nodes['considered']} of {nodes['total']} nodes considered"
    summary = f"{_count(moved, 'pod')} {verb}{doubts}, {refused} refused; {considered}"
    console.print(Text(summary, style="bold green" if moved else "bold"))


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _print_rows(console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with a title; columns that hold numbers stand to the right."""
    table = Table(box=SIMPLE_HEAD if console.is_terminal else None, pad_edge=False, show_edge=False)
    for number, column in enumerate(columns):
        numeric = all(row[number].isdigit() for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold", no_wrap=numeric)
    for row in rows:
        table.add_row(*map(Text, row))
    console.print()
    console.print(Text(title, style="bold"))
    console.print(table)


def _print_totals(console: Console, report: Report) -> None:
    runs = report["strategies"]
    if not runs:
        return
    unknown = ("unknown",) if report["unknown"] else ()
    columns: tuple[str, ...] = ("profile", "strategy", "evicted", *unknown, "refused")
    if any(run["error"] for run in runs):
        columns += ("error",)
    rows = [[_cell(run[column]) for column in columns] for run in runs]
    _print_rows(console, "By strategy", columns, rows)
    counts = Counter(each["node"] for each in report["evictions"])
    if counts:
        nodes = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
        _print_rows(console, "By node", ["node", "evicted"], [(node, str(count)) for node, count in nodes])


def _cell(value: str | int | None) -> str:
    return "" if value is None else str(value)


def _print_evictions(console: Console, evictions: Sequence[Row]) -> None:
    if not evictions:
        return
    rows = [(_pod(each), each["node"], _owner(each), each["strategy"], _why(each)) for each in evictions]
    _print_rows(console, "Pods that go", ["pod", "node", "owner", "strategy", "because"], rows)


def _why(row: Row) -> str:
    return f"{row['reason']} (another controller moves it)" if row["background"] else str(row["reason"])


def _print_doubts(console: Console, doubts: Sequence[Row]) -> None:
    if not doubts:
        return
    rows = [(_pod(each), each["node"], _owner(each), each["strategy"], each["error"]) for each in doubts]
    _print_rows(console, "Pods that may go", ["pod", "node", "owner", "strategy", "what is unclear"], rows)


def _pod(row: Row) -> str:
    return f"{row['namespace']}/{row['name']}"


def _owner(row: Row) -> str:
    owner = row["owner"]
    return f"{owner['kind']}/{owner['name']}" if owner else ""


def _print_refusals(console: Console, refusals: Sequence[Row], *, everything: bool) -> None:
    if not refusals:
        return
    title = "Pods that were asked for and stay"
    if everything:
        rows = [(_pod(each), each["node"], each["strategy"], each["by"], each["reason"]) for each in refusals]
        _print_rows(console, title, ["pod", "node", "strategy", "by", "reason"], rows)
        return
    causes: dict[tuple[str, str, str], list[str]] = {}
    for each in refusals:
        causes.setdefault((each["strategy"], each["by"], each["reason"]), []).append(_pod(each))
    grouped = [(str(len(pods)), *cause, _some(pods)) for cause, pods in causes.items()]
    _print_rows(console, f"{title} (-v 1 lists each)", ["pods", "strategy", "by", "reason", "which"], grouped)


def _some(pods: Sequence[str]) -> str:
    left = len(pods) - _PODS_SHOWN
    return ", ".join(pods[:_PODS_SHOWN]) + (f" and {left} more" if left > 0 else "")


def _print_trouble(console: Console, report: Report) -> None:
    if report["failures"] or report["warnings"]:
        console.print()
    for failure in report["failures"]:
        where = f"{_pod(failure)} on {failure['node']}"
        console.print(Text(f"Failed: {where} ({failure['strategy']}): {failure['error']}", style="red"))
    for warning in report["warnings"]:
        console.print(Text(f"Warning: {warning}", style="yellow"))
