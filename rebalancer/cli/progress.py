"""Signs of life on standard error: a line that moves on a terminal, a line of log now and then elsewhere.

The run writes down how far it is and goes on; a thread looks at that from time to time, so that the run waits for
nothing, and a short run shows nothing.
"""

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol

from rebalancer.run.progress import Progress, Silent, Stage
from rebalancer.untrusted.printable import printable

if TYPE_CHECKING:
    from rebalancer.report.show import Color

_LOG = logging.getLogger(__name__)


class Display(Protocol):
    """What shows a standing.

    Attributes:
        first: seconds until it shows the first one.
        every: seconds between two.
    """

    first: float
    every: float

    def show(self, standing: Stage) -> None:
        """Show it, in the place of the one before."""
        ...

    def close(self) -> None:
        """Leave nothing behind."""
        ...


class Lines:
    """A line of log every five seconds."""

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


class ProgressWatch:
    """Looks now and then how far a run is, and shows it.

    Args:
        display: where it is shown.
        retries: shown too, if given, instead of being logged.
    """

    def __init__(self, display: Display, retries: Retries | None = None) -> None:
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
        return Silent()
    if _is_terminal():
        from rebalancer.cli.moving_line import MovingLine  # noqa: PLC0415  rich takes its time

        return ProgressWatch(MovingLine(colored=color != "never"), None if verbosity else Retries())
    return ProgressWatch(Lines()) if verbosity else Silent()


def _is_terminal() -> bool:
    """Say whether standard error can be written over."""
    stream = sys.stderr
    return stream is not None and not stream.closed and stream.isatty() and os.environ.get("TERM") not in _PLAIN


_PLAIN = ("dumb", "unknown")
