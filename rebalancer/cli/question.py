"""The question before a live run, on standard error; only `--yes` and a pod go without it."""

import os
import select
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import click

from rebalancer.errors import UsageError
from rebalancer.report.layout import hanging, listed
from rebalancer.report.question import question_lines
from rebalancer.run.options import in_pod
from rebalancer.untrusted.printable import printable, printable_lines

_AGREED = ("y", "yes")
_MOST_NAMES = 5
_LONGEST_LINE = 1_000
_INDENT = 12
_USUAL_WIDTH = 80
_LOOK_UP_SECONDS = 0.2


class Question:
    """Asks the person at the terminal (a `rebalancer.run.consent.Person`).

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
        """Show a plan, and ask.

        Raises:
            UsageError: the answer is anything but yes.
        """
        for label, text in question_lines(report):
            _show(label if label == "!" else f"{label}:", text)
        if unseen:
            _show("new:", f"{listed(unseen, _MOST_NAMES)} {'was' if len(unseen) == 1 else 'were'} not shown before")
        question = "The plan has changed. Evict" if unseen else "Evict"
        click.echo(f"{question} pods from {self._where}? [y/N]: ", nl=False, err=True)
        if _typed(sys.stdin).strip().lower() not in _AGREED:
            raise UsageError("nothing was done")


def _show(label: str, text: str) -> None:
    """Print a line, wrapped where the terminal ends and not within a name."""
    first, *others = next(hanging([()], [printable_lines(text, _LONGEST_LINE)], _width(), _INDENT))
    for line in (f"{label:{_INDENT}}{first[_INDENT:]}", *others):
        click.echo(line, err=True)


def _typed(terminal: TextIO) -> str:
    """Wait for a line.

    A signal that comes just before a read begins, or that another thread hears, does not interrupt the read: the
    program would not end before the next key.  So it looks up from time to time.
    """
    while not select.select([terminal], [], [], _LOOK_UP_SECONDS)[0]:
        pass
    return terminal.readline()


def _width() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or _USUAL_WIDTH
    except (OSError, ValueError):  # no terminal any more, or none with a file behind it
        return _USUAL_WIDTH


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and not stream.closed and stream.isatty()
