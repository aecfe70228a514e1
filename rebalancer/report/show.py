"""The report for a person: as wide as the terminal; without a terminal, a line for each pod."""

import os
from collections.abc import Mapping
from io import StringIO
from typing import IO, Any, Literal

from rich.console import Console

from rebalancer.report.table import print_table
from rebalancer.report.terminal import print_terminal
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
        print_table(safe, _console(text, stream, color, _PLAIN_WIDTH), everything=everything)
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
