"""What a person sees on standard error: signs of life, and the question before a live run.

Signs of life are a line that moves on a terminal.  The run writes down how far it is and goes on; a thread looks at
that from time to time, so that the run waits for nothing, and a short run shows nothing.  rich is imported as the line
is first shown, for the same reason.

Only `--yes` and a pod go without the question.
"""

import logging
import os
import select
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TextIO

import click

from rebalancer.errors import Declined, UsageError
from rebalancer.report.layout import hanging, listed
from rebalancer.report.view import Color, lines, move_lines, question_lines
from rebalancer.run.progress import Progress, Stage
from rebalancer.untrusted.printable import printable, printable_lines

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


_FIRST_SECONDS, _EVERY_SECONDS = 0.5, 0.2  # until the line is first shown, and between two looks


@contextmanager
def _retries_told(tell: Callable[[Stage], None]) -> Iterator[None]:
    def hear(record: logging.LogRecord) -> bool:
        tell(Stage(printable(record.getMessage())))
        return False

    log = logging.getLogger("rebalancer.kube.tries")
    level = log.level
    log.setLevel(logging.INFO)
    log.addFilter(hear)
    try:
        yield
    finally:
        log.removeFilter(hear)
        log.setLevel(level)


def progress_for(output: str, verbosity: int, *, log_as_json: bool, color: Color = "auto") -> Progress:
    """Return what shows signs of life beside a report: nothing with one for programs, or where no line can move."""
    is_for_people = output in ("table", "wide") and not log_as_json
    # A dumb terminal cannot overwrite a line.
    if is_for_people and _is_terminal(sys.stderr) and os.environ.get("TERM") not in ("dumb", "unknown"):
        return MovingLine(colored=color != "never", hears_retries=not verbosity)
    return Progress()


class MovingLine(Progress):
    """Shows how far a run is: a bar where that is known, and words; if it hears retries, requests tried again too."""

    def __init__(self, *, colored: bool, hears_retries: bool) -> None:
        super().__init__()
        self._colored, self._hears_retries = colored, hears_retries
        self._standing = Stage("")

    def tell(self, standing: Stage) -> None:
        """Remember it until the next look."""
        self._standing = standing

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Look and show as long as this is entered."""
        over = threading.Event()
        watcher = threading.Thread(target=self._look, args=(over,), name="progress", daemon=True)
        watcher.start()
        try:
            with _retries_told(self.tell) if self._hears_retries else nullcontext():
                yield
        finally:
            over.set()
            watcher.join()

    def _look(self, over: threading.Event) -> None:
        if over.wait(_FIRST_SECONDS):
            return
        with self._line() as bar:
            while not over.is_set():
                now = self._standing
                bar.update(bar.task_ids[0], description=now.words, completed=now.done or 0, total=now.of)
                bar.refresh()
                over.wait(_EVERY_SECONDS)

    @contextmanager
    def _line(self) -> Iterator["Bar"]:
        """Show the line; meanwhile what is logged is written above it, whole."""
        from rich.console import Console  # noqa: PLC0415  see the module's docstring
        from rich.progress import BarColumn, SpinnerColumn, TextColumn  # noqa: PLC0415
        from rich.progress import Progress as Bar  # noqa: PLC0415
        from rich.table import Column  # noqa: PLC0415

        console = Console(stderr=True, highlight=False, no_color=None if self._colored else True)
        columns = (
            SpinnerColumn("line"),  # of ASCII, which every terminal has
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
            BarColumn(bar_width=None, table_column=Column(max_width=40)),
        )
        hides: Any = {"auto_refresh": False, "transient": True, "redirect_stdout": False, "redirect_stderr": False}
        stream, above = sys.stderr, partial(console.out, end="", highlight=False)
        handlers = (each for each in logging.getLogger().handlers if isinstance(each, logging.StreamHandler))
        logs = [each for each in handlers if each.stream is stream]
        with Bar(*columns, console=console, **hides) as bar:
            bar.add_task("", total=None)
            for each in logs:
                each.setStream(SimpleNamespace(write=above, flush=stream.flush))
            yield bar
        for each in logs:
            each.setStream(stream)


_AGREED, _SHOW = ("y", "yes"), ("show", "s")
_LINES_OF_QUESTION, _FEWEST_MOVES, _MOST_NAMES = 2, 3, 5
_LONGEST_LINE, _LABEL = 1_000, 11
_USUAL_WIDTH, _USUAL_HEIGHT = 80, 24
_LOOK_UP_SECONDS = 0.2


def question(cluster: Mapping[str, str | None]) -> Callable[[Mapping[str, Any], Sequence[str]], None]:
    """Return what asks the person at the terminal (a `rebalancer.run.live_run.Person`)."""
    server = str(cluster["server"])
    where = printable(f"context {cluster['context']} ({server})" if cluster["context"] else server)
    if not (_is_terminal(sys.stdin) and _is_terminal(sys.stderr)):
        raise UsageError(
            f"this run would evict pods from {where}, and there is no terminal to ask on: "
            "say so with --yes, or look first with --dry-run"
        )
    return partial(_ask, where)


def _ask(where: str, report: Mapping[str, Any], unseen: Sequence[str]) -> None:
    """Show a plan, and ask; `show` pages through all that a dry run says of it."""
    told = list(question_lines(report))
    if unseen:
        new = f"{listed(unseen, _MOST_NAMES)} {'was' if len(unseen) == 1 else 'were'} not shown before"
        told.append(("new", new))
    labels = [((label if label == "!" else f"{label}:").ljust(_LABEL), text) for label, text in told]
    shown = [line for lines_ in _laid_out(labels) for line in lines_]
    click.echo("\n".join(shown), err=True)
    _show_moves(list(move_lines(report)), _size()[1] - len(shown) - _LINES_OF_QUESTION)
    changed = "The plan has changed. " if unseen else ""
    answer = _SHOW[0]
    while answer in _SHOW:
        click.echo(f"{changed}Evict pods from {where}? [y/N/show]: ", nl=False, err=True)
        answer = _typed(sys.stdin).strip().lower()
        if answer in _SHOW:
            _page(lines(report, sys.stderr, everything=True))
    if answer not in _AGREED:
        raise Declined("Nothing was evicted: the answer was not yes.")


def _laid_out(rows: Sequence[tuple[str, str]]) -> Iterator[list[str]]:
    """Yield the lines of names with texts, wrapped where the terminal ends and not within a name."""
    names = [(printable(name),) for name, _ in rows]
    return hanging(names, [printable_lines(text, _LONGEST_LINE) for _, text in rows], _size()[0])


def _show_moves(moves: Sequence[tuple[str, str]], room: int) -> None:
    for number, move in enumerate(_laid_out(moves)):
        room -= len(move)
        if number >= _FEWEST_MOVES and room < 0:
            click.echo(f"and {len(moves) - number} more: `show` lists them", err=True)
            return
        click.echo("\n".join(move), err=True)


def _page(text: Sequence[str]) -> None:
    size = max(_size()[1] - 1, 1)
    for start in range(0, len(text), size):
        click.echo("\n".join(text[start : start + size]), err=True)
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


def _size() -> tuple[int, int]:
    """Return how many columns and lines the terminal has; the usual ones where it does not know."""
    columns, rows = os.get_terminal_size(sys.stderr.fileno())
    return columns or _USUAL_WIDTH, rows or _USUAL_HEIGHT


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and not stream.closed and stream.isatty()
