"""Signs of life on standard error: a line that moves on a terminal, a line of log now and then elsewhere.

The run writes down how far it is and goes on; a thread looks at that from time to time, so that the run waits for
nothing, and a short run shows nothing.  rich is imported as a line that moves is first shown, for the same reason.
"""

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TextIO

from rebalancer.run.progress import Progress, Stage
from rebalancer.untrusted.printable import printable

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from rebalancer.report.view import Color


_LOG = logging.getLogger(__name__)


class Lines:
    """A line of log every five seconds: `first` until the first one, `every` between two."""

    first = every = 5.0

    def show(self, standing: Stage) -> None:
        """Write it."""
        _LOG.info("%s", standing.words)

    def close(self) -> None:
        """Leave the lines where they are."""


class Retries(logging.Handler):
    """Takes the log of requests that are tried again: the last one stands in the place of what the run does."""

    def __init__(self) -> None:
        super().__init__()
        self.standing: Stage | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Take it down for the next look."""
        self.standing = Stage(printable(record.getMessage()))

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Hear all retries as long as this is entered; nobody else does."""
        log = logging.getLogger("rebalancer.kube.retry_policy")
        level, log.propagate = log.level, False
        log.setLevel(logging.INFO)
        log.addHandler(self)
        try:
            yield
        finally:
            log.removeHandler(self)
            log.setLevel(level)
            log.propagate = True


class ProgressWatch(Progress):
    """Looks now and then how far a run is, and shows it.

    Args:
        display: where it is shown, `first` after so many seconds, and then `every` so many.
        retries: shown too, if given, instead of being logged.
    """

    def __init__(self, display: "Lines | MovingLine", retries: Retries | None = None) -> None:
        self._display = display
        self._standing: Stage | None = None
        self._retries = retries

    def tell(self, standing: Stage) -> None:
        """Take it down for the next look."""
        self._standing = standing
        if self._retries:
            self._retries.standing = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Look and show as long as this is entered."""
        over = threading.Event()
        watcher = threading.Thread(target=self._look, args=(over,), name="progress", daemon=True)
        watcher.start()
        try:
            with self._retries.heard() if self._retries else nullcontext():
                yield
        finally:
            over.set()
            watcher.join()

    def _look(self, over: threading.Event) -> None:
        pause = self._display.first
        while not over.wait(pause):
            standing = (self._retries.standing if self._retries else None) or self._standing
            if standing is not None:
                self._display.show(standing)
            pause = self._display.every
        self._display.close()


def progress_for(output: str, verbosity: int, *, log_as_json: bool, color: "Color" = "auto") -> Progress:
    """Return what shows signs of life beside a report; with one for programs there are none.

    Args:
        output: as `rebalancer.report.delivery` has it.
        verbosity: without a terminal, 1 asks for lines.
        log_as_json: whether standard error is for programs too.
        color: as for the report.
    """
    if output not in ("table", "wide") or log_as_json:
        return Progress()
    stream = sys.stderr
    is_terminal = stream is not None and not stream.closed and stream.isatty()
    if is_terminal and os.environ.get("TERM") not in ("dumb", "unknown"):  # else a line cannot be written over
        return ProgressWatch(MovingLine(colored=color != "never"), None if verbosity else Retries())
    return ProgressWatch(Lines()) if verbosity else Progress()


class MovingLine:
    """A bar where it is known how far it goes, and words; log lines are written above it, whole.

    Args:
        colored: whether it may have colours; NO_COLOR takes them away as well.
    """

    first = 0.5
    every = 0.2

    def __init__(self, *, colored: bool) -> None:
        self._colored = colored
        self._bar: Bar | None = None
        self._stream: TextIO = sys.stderr
        self._logs: list[logging.StreamHandler[Any]] = []

    def show(self, standing: Stage) -> None:
        """Show it, in the place of the one before."""
        bar = self._bar = self._bar or self._open()
        bar.update(bar.task_ids[0], description=standing.words, completed=standing.done or 0, total=standing.of)
        bar.refresh()

    def close(self) -> None:
        """Take the line away, and give the log back to standard error."""
        if self._bar:
            self._bar.stop()
            for each in self._logs:
                each.setStream(self._stream)
            self._bar = None

    def write(self, text: str) -> None:
        """Write what is logged above the line (this is the stream of the log meanwhile)."""
        assert self._bar is not None
        self._bar.console.out(text, end="", highlight=False)

    def flush(self) -> None:
        """Let standard error be written."""
        self._stream.flush()

    def _open(self) -> "Bar":
        from rich.console import Console  # noqa: PLC0415  see the module's docstring
        from rich.progress import BarColumn, SpinnerColumn, TextColumn  # noqa: PLC0415
        from rich.progress import Progress as Bar  # noqa: PLC0415
        from rich.table import Column  # noqa: PLC0415

        console = Console(stderr=True, highlight=False, no_color=None if self._colored else True)
        progress = Bar(
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
        progress.add_task("", total=None)
        self._bar, self._stream = progress, sys.stderr
        logs = (each for each in logging.getLogger().handlers if isinstance(each, logging.StreamHandler))
        self._logs = [each for each in logs if each.stream is sys.stderr]
        for each in self._logs:
            each.setStream(self)
        return progress
