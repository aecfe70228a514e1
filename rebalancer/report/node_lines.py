"""The nodes of a report on a terminal."""

from collections.abc import Mapping
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from rebalancer.eviction.observation import OVERUTILIZED
from rebalancer.report.layout import hanging
from rebalancer.report.nodes import Bar, bands, bars, spread_lines, staying_over

_WIDE = 100
_INDENT = 2


def print_nodes(report: Mapping[str, Any], run: Mapping[str, Any], console: Console) -> None:
    """Print the nodes of a strategy that weighs them, now and after the plan."""
    console.print()
    console.print(Text(f"Nodes now and after the plan ({run['strategy']})", style="bold"))
    for words, now, then in bands(run):
        console.print(Text(f"  {now:>4} -> {then:>4} {words}"))
    _prose(console, list(spread_lines(run)))
    drawn = list(bars(run, 20 if console.width >= _WIDE else 10))
    beside = max(_INDENT + cell_len(each.name) + 2 + cell_len(each.text) for each in drawn) <= console.width
    size = max(cell_len(each.name) for each in drawn)
    for each in drawn:
        _print_bar(each, size if beside else 0, console)
    _prose(console, list(staying_over(report, run)), "yellow")


def _prose(console: Console, rows: list[tuple[str, str]], style: str = "") -> None:
    for lines in hanging([row[:1] for row in rows], [row[1] for row in rows], console.width, _INDENT):
        for line in lines:
            console.print(Text(line, style=style), soft_wrap=True)


def _print_bar(drawn: Bar, size: int, console: Console) -> None:
    blank = " " * _INDENT
    if not drawn.name:
        text = blank + drawn.text
    elif size:
        text = f"{blank}{drawn.name}{' ' * (size - cell_len(drawn.name))}  {drawn.text}"
    else:
        text = f"{blank}{drawn.name}\n{blank}{blank}{drawn.text}"
    console.print(Text(text, style=_style(drawn)), soft_wrap=True)


def _style(drawn: Bar) -> str:
    if drawn.state_after == OVERUTILIZED:
        return "red"
    return "green" if drawn.state == OVERUTILIZED else ""
