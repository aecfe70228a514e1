"""SIGTERM and SIGINT: they end the program at once, until there is something to finish first."""

import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

from rebalancer.errors import Interrupted

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Interruption:
    """Catches the signals while it is entered; a container's first process would otherwise not notice SIGTERM.

    Attributes:
        signal: the name of the last signal that came; empty for none.

    Raises:
        Interrupted: a signal came, and nothing was said about what to do then.
    """

    def __init__(self) -> None:
        self.signal = ""
        self._act: Callable[[str], None] = _give_up
        self._before: list[signal.Handlers | int | Callable[[int, FrameType | None], object] | None] = []

    def __enter__(self) -> Self:
        self._before = [signal.signal(number, self._receive) for number in _SIGNALS]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, before in zip(_SIGNALS, self._before, strict=True):
            signal.signal(number, before)

    def then(self, act: Callable[[str], None]) -> None:
        """From now on, let a signal do nothing but call `act` with its name."""
        self._act = act

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        self.signal = signal.Signals(number).name
        self._act(self.signal)


def _give_up(name: str) -> None:
    raise Interrupted(f"stopped by {name} before anything was evicted")
