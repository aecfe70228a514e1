"""One line of a terminal that moves, with log lines above it.

rich is imported as the line is first shown: a short run does not pay for it.
"""

import logging
import sys
from typing import TYPE_CHECKING, TextIO

from rebalancer.run.progress import Stage

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID


class MovingLine:
    """A bar where it is known how far it goes, and words.

    Args:
        colored: whether it may have colours; NO_COLOR takes them away as well.
    """

    first = 0.5
    every = 0.2

    def __init__(self, *, colored: bool) -> None:
        self._colored = colored
        self._shown: tuple[Progress, TaskID, _Logs] | None = None

    def show(self, standing: Stage) -> None:
        """Show it, in the place of the one before."""
        progress, task, _ = self._shown = self._shown or self._open()
        progress.update(task, description=standing.words, completed=standing.done or 0, total=standing.of)
        progress.refresh()

    def close(self) -> None:
        """Take the line away."""
        if self._shown:
            progress, _, logs = self._shown
            progress.stop()
            logs.give_back()
            self._shown = None

    def _open(self) -> "tuple[Progress, TaskID, _Logs]":
        from rich.console import Console  # noqa: PLC0415  see the module's docstring
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn  # noqa: PLC0415
        from rich.table import Column  # noqa: PLC0415

        console = Console(stderr=True, highlight=False, no_color=None if self._colored else True)
        progress = Progress(
            SpinnerColumn("line"),  # of ASCII, which every terminal has
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
            BarColumn(bar_width=None, table_column=Column(max_width=40)),
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        progress.start()
        return progress, progress.add_task("", total=None), _Logs(console)


class _Logs:
    """Lets log lines be written above the line that moves, whole, until they are given back to standard error."""

    def __init__(self, console: "Console") -> None:
        self._console = console
        self._handlers = [
            each
            for each in logging.getLogger().handlers
            if isinstance(each, logging.StreamHandler) and each.stream is sys.stderr
        ]
        self._stream: TextIO = sys.stderr
        for each in self._handlers:
            each.setStream(self)

    def give_back(self) -> None:
        for each in self._handlers:
            each.setStream(self._stream)

    def write(self, text: str) -> None:
        self._console.out(text, end="", highlight=False)

    def flush(self) -> None:
        self._stream.flush()
