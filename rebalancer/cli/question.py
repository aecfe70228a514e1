"""The question before a live run, on standard error; only `--yes` and a pod go without it."""

import os
import select
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import click

from rebalancer.errors import Declined, UsageError
from rebalancer.report.layout import hanging, listed
from rebalancer.report.view import lines, move_lines, question_lines
from rebalancer.run.options import in_pod
from rebalancer.untrusted.printable import printable, printable_lines

_AGREED, _SHOW = ("y", "yes"), ("show", "s")
_LINES_OF_QUESTION = 2
_FEWEST_MOVES = 3
_MOST_NAMES = 5
_LONGEST_LINE = 1_000
_LABEL = 11
_USUAL_WIDTH, _USUAL_HEIGHT = 80, 24
_LOOK_UP_SECONDS = 0.2


class Question:
    """Asks the person at the terminal (a `rebalancer.run.cluster_view.Person`).

    Args:
        yes: whether the answer was given on the command line; in a pod nobody is asked either.
    """

    def __init__(self, *, yes: bool) -> None:
        self._is_needless = yes or in_pod()
        self._where = ""

    def must_be_asked(self, cluster: Mapping[str, str | None]) -> bool:
        """Say whether there is a question.

        Raises:
            UsageError: there is one, and no terminal to ask it on.
        """
        if self._is_needless:
            return False
        server = str(cluster["server"])
        self._where = printable(f"context {cluster['context']} ({server})" if cluster["context"] else server)
        if not (_is_terminal(sys.stdin) and _is_terminal(sys.stderr)):
            raise UsageError(
                f"this run would evict pods from {self._where}, and there is no terminal to ask on: "
                "say so with --yes, or look first with --dry-run"
            )
        return True

    def agree(self, report: Mapping[str, Any], unseen: Sequence[str]) -> None:
        """Show a plan, and ask; `show` pages through all that a dry run says of it.

        Raises:
            Declined: the answer is anything but yes.
        """
        written = sum(_show(label if label == "!" else f"{label}:", text) for label, text in question_lines(report))
        if unseen:
            new = f"{listed(unseen, _MOST_NAMES)} {'was' if len(unseen) == 1 else 'were'} not shown before"
            written += _show("new:", new)
        _show_moves(report, _height() - written - _LINES_OF_QUESTION)
        question = "The plan has changed. Evict" if unseen else "Evict"
        answer = _SHOW[0]
        while answer in _SHOW:
            click.echo(f"{question} pods from {self._where}? [y/N/show]: ", nl=False, err=True)
            answer = _typed(sys.stdin).strip().lower()
            if answer in _SHOW:
                _page(lines(report, sys.stderr, everything=True))
        if answer not in _AGREED:
            raise Declined("Nothing was evicted: the answer was not yes.")


def _show(label: str, text: str) -> int:
    """Print a line, wrapped where the terminal ends and not within a name; return how many lines it became."""
    shown = next(hanging([(label.ljust(_LABEL),)], [printable_lines(text, _LONGEST_LINE)], _width()))
    for line in shown:
        click.echo(line, err=True)
    return len(shown)


def _show_moves(report: Mapping[str, Any], room: int) -> None:
    """Print as many moves as there are lines, and how many more there are; the first ones in any case."""
    moves = list(move_lines(report))
    names = [(printable(name),) for name, _ in moves]
    shown = 0
    for move in hanging(names, [printable_lines(text, _LONGEST_LINE) for _, text in moves], _width()):
        room -= len(move)
        if shown >= _FEWEST_MOVES and room < 0:
            break
        shown += 1
        for line in move:
            click.echo(line, err=True)
    if shown < len(moves):
        click.echo(f"and {len(moves) - shown} more: `show` lists them", err=True)


def _page(text: Sequence[str]) -> None:
    """Print lines, a screen at a time."""
    size = max(_height() - 1, 1)
    for start in range(0, len(text), size):
        for line in text[start : start + size]:
            click.echo(line, err=True)
        if start + size < len(text):
            click.echo("-- Enter: more, q: back to the question -- ", nl=False, err=True)
            if _typed(sys.stdin).strip().lower() == "q":
                return


def _typed(terminal: TextIO) -> str:
    """Wait for a line.

    A signal that comes just before a read begins, or that another thread hears, does not interrupt the read: the
    program would not end before the next key.  So it looks up from time to time.
    """
    while not select.select([terminal], [], [], _LOOK_UP_SECONDS)[0]:
        pass
    return terminal.readline()


def _width() -> int:
    return _size()[0] or _USUAL_WIDTH


def _height() -> int:
    return _size()[1] or _USUAL_HEIGHT


def _size() -> tuple[int, int]:
    try:
        return os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):  # no terminal any more, or none with a file behind it
        return 0, 0


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and not stream.closed and stream.isatty()
