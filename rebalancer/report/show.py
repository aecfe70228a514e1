"""The report for a person: as wide as the terminal; without a terminal, a line for each pod."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import IO, Any, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rebalancer.report.headline import (
    failures,
    looked_at,
    other_warnings,
    owner_name,
    pod_name,
    pods_title,
    run_title,
    summary,
    when,
)
from rebalancer.report.nodes import COLUMNS as HELD_COLUMNS
from rebalancer.report.nodes import held_rows, node_columns, node_rows
from rebalancer.report.terminal import print_terminal
from rebalancer.report.wave_lines import COLUMNS, evenness_lines, wave_rows
from rebalancer.untrusted.printable import printable

Color = Literal["auto", "always", "never"]

#: Wider than any row: without a terminal each row is one line.
_PLAIN_WIDTH = 500


def show(report: Mapping[str, Any], stream: IO[str], *, everything: bool = False, color: Color = "auto") -> None:
    """Print a report; the arguments are those of `lines`."""
    stream.writelines(f"{line}\n" for line in lines(report, stream, everything=everything, color=color))


def lines(report: Mapping[str, Any], stream: IO[str], *, everything: bool = False, color: Color = "auto") -> list[str]:
    """Return the lines of a report.

    Args:
        report: as `rebalancer.report.document` makes it.
        stream: where they are to be printed.
        everything: list every pod, however many they are.
        color: `auto` colours on a terminal, unless the variable NO_COLOR is set or the terminal is dumb.
    """
    safe, terminal = _printable(report), stream.isatty()
    # Not straight into the stream: rich would end the program itself if the reader has closed the pipe.
    text = StringIO()
    if terminal:
        print_terminal(safe, _console(text, stream, color), everything=everything)
    else:
        _print_table(safe, _console(text, stream, color, _PLAIN_WIDTH), everything=everything)
    drawn = _drawn_in(text.getvalue(), getattr(stream, "encoding", None))
    return [line.rstrip() for line in drawn.splitlines()]


def _console(text: IO[str], stream: IO[str], color: Color, width: int | None = None) -> Console:
    """Return a console that writes into a text, with the width and colours of the stream."""
    size = Console(file=stream).width if width is None else width
    colored = color == "always" or (color == "auto" and stream.isatty() and _wanted())
    return Console(
        file=text,
        width=size,
        highlight=False,
        soft_wrap=True,
        force_terminal=colored,
        color_system="standard" if colored else None,
    )


def _drawn_in(text: str, encoding: str | None) -> str:
    """Return a text with its bars drawn in ASCII if the encoding lacks their characters."""
    try:
        "█·".encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return text.translate({ord("█"): "#", ord("·"): "."})
    return text


def _wanted() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in {"dumb", "unknown"}


def _printable(value: Any) -> Any:
    """Return a document whose texts are safe to print: the owner of a pod may have written some of them."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {key: _printable(each) for key, each in value.items()}
    return [_printable(each) for each in value] if isinstance(value, list) else value


_PODS_SHOWN = 3

Report = Mapping[str, Any]
Row = Mapping[str, Any]


def _print_table(report: Report, console: Console, *, everything: bool = False) -> None:
    """Print a report, a line for each pod.

    Args:
        report: as `rebalancer.report.document` makes it, safe to show.
        console: so wide that no row breaks.
        everything: list every refused pod, instead of only the first ones of each cause.
    """
    _print_head(console, report)
    _print_totals(console, report)
    for run in report["strategies"]:
        if run["nodes"] and run["thresholds"]:
            title, rows = f"Nodes now and after the plan ({run['strategy']})", node_rows(run, everything=everything)
            _print_rows(console, title, node_columns(run), rows)
    _print_waves(console, report["strategies"])
    _print_held(console, report)
    _print_evictions(console, report["evictions"], pods_title(report))
    _print_doubts(console, report["unknown"])
    _print_refusals(console, report["refusals"], everything=everything)
    _print_trouble(console, report)


def _print_head(console: Console, report: Report) -> None:
    if failed := failures(report):
        console.print(Text(failed, style="bold red"))
    console.print(Text(f"{run_title(report)}, {when(report)}", style="bold"))
    for alarm in report["overview"]["alarms"]:
        console.print(Text(f"! {alarm}", style="yellow"))
    if report["skipped"]:
        console.print(Text(f"Nothing was done: {report['skipped']}", style="yellow"))
        return
    console.print(Text(summary(report), style="bold green" if report["evictions"] else "bold"))


def _print_rows(console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with a title; columns of numbers are aligned to the right."""
    table = Table(box=None, pad_edge=False, show_edge=False)
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
    numbers: tuple[str, ...] = ("profile", "strategy", "evicted", *unknown, "refused")
    rows = [[*(_cell(run[column]) for column in numbers), looked_at(run)] for run in runs]
    _print_rows(console, "By strategy", [*numbers, "looked at"], rows)
    counts = Counter(each["node"] for each in report["evictions"])
    if counts:
        nodes = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
        _print_rows(console, "By node", ["node", "evicted"], [(node, str(count)) for node, count in nodes])


def _print_waves(console: Console, runs: Sequence[Row]) -> None:
    for run in runs:
        if rows := list(wave_rows(run)):
            _print_rows(console, f"Waves ({run['strategy']})", COLUMNS, rows)
            for line in evenness_lines(run):
                console.print(Text(line))


def _print_held(console: Console, report: Report) -> None:
    if rows := list(held_rows(report)):
        _print_rows(console, "Nodes kept empty", HELD_COLUMNS, rows)


def _cell(value: str | int | None) -> str:
    return "" if value is None else str(value)


def _print_evictions(console: Console, evictions: Sequence[Row], title: str) -> None:
    if not evictions:
        return
    rows = [(pod_name(each), each["node"], owner_name(each), each["strategy"], _why(each)) for each in evictions]
    _print_rows(console, title, ["pod", "node", "owner", "strategy", "because"], rows)


def _why(row: Row) -> str:
    return f"{row['reason']} (another controller moves it)" if row["background"] else str(row["reason"])


def _print_doubts(console: Console, doubts: Sequence[Row]) -> None:
    if not doubts:
        return
    rows = [(pod_name(each), each["node"], owner_name(each), each["strategy"], each["error"]) for each in doubts]
    _print_rows(console, "Pods that may have gone", ["pod", "node", "owner", "strategy", "what is unclear"], rows)


def _print_refusals(console: Console, refusals: Sequence[Row], *, everything: bool) -> None:
    if not refusals:
        return
    title = "Considered but kept"
    if everything:
        rows = [(pod_name(each), each["node"], each["strategy"], each["by"], each["reason"]) for each in refusals]
        _print_rows(console, title, ["pod", "node", "strategy", "by", "reason"], rows)
        return
    causes: dict[tuple[str, str, str], list[str]] = {}
    for each in refusals:
        causes.setdefault((each["strategy"], each["by"], each["reason"]), []).append(pod_name(each))
    grouped = [(str(len(pods)), *cause, _some(pods)) for cause, pods in causes.items()]
    _print_rows(console, f"{title} (-v 1 lists each)", ["pods", "strategy", "by", "reason", "which"], grouped)


def _some(pods: Sequence[str]) -> str:
    left = len(pods) - _PODS_SHOWN
    return ", ".join(pods[:_PODS_SHOWN]) + (f" and {left} more" if left > 0 else "")


def _print_trouble(console: Console, report: Report) -> None:
    warnings = other_warnings(report)
    if report["failures"] or warnings:
        console.print()
    for failure in report["failures"]:
        where = f"{pod_name(failure)} on {failure['node']}"
        console.print(Text(f"Failed: {where} ({failure['strategy']}): {failure['error']}", style="red"))
    for warning in warnings:
        console.print(Text(f"Warning: {warning}", style="yellow"))
