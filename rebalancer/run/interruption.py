"""SIGTERM, SIGINT and SIGHUP: they end the program at once, unless something has to be finished first."""

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Self, TypeAlias

from rebalancer.clock import boottime
from rebalancer.errors import Interrupted

_Handler: TypeAlias = signal.Handlers | int | Callable[[int, FrameType | None], object] | None
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
NAP_SECONDS = 1.0  # waits are cut into naps: time during which a laptop is closed would not count in one long sleep
_BY_SIGNAL = 128  # what a shell adds to the number of the signal that ended a program


def sleep(seconds: float) -> None:
    """Wait for so many seconds; a signal that raises ends the wait."""
    until = boottime() + seconds
    while (left := until - boottime()) > 0:
        time.sleep(min(NAP_SECONDS, left))


class Interruption:
    """Catches the signals while it is entered; without it SIGTERM would have no effect in a container (process 1).

    SIGHUP counts as SIGTERM.  If it was ignored when the program began, as under `nohup`, it stays ignored.  A signal
    raises Interrupted (with `so_far`, how far the program came) unless `then` was called before.
    """

    def __init__(self, so_far: str = "before anything was evicted") -> None:
        self._so_far = so_far
        self.signal = ""  # the name of the last signal that came; empty for none
        self.exit_code = 0  # the exit code that shells give to this signal; 0 for none
        self.ending: threading.Event | None = None  # set by every signal: a client's, whose requests end soon then
        self._act: Callable[[str], None] = self._leave
        self._has_raised = False
        self._before: dict[signal.Signals, _Handler] = {}

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            before = signal.getsignal(number)
            if number != signal.SIGHUP or before != signal.SIG_IGN:
                self._before[number] = before
                signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def then(self, act: Callable[[str], None]) -> None:
        """From now on, a signal only calls `act` with its name."""
        self._act = act

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        received = signal.Signals(number)
        self.signal = received.name
        counted = signal.SIGTERM if received == signal.SIGHUP else received
        self.exit_code = _BY_SIGNAL + counted
        if self.ending:
            self.ending.set()
        if self._has_raised:
            return  # the program ends already; raising again would break off what it finishes
        try:
            self._act(received.name)
        except Interrupted:
            self._has_raised = True
            raise

    def _leave(self, name: str) -> None:
        raise Interrupted(f"stopped by {name} {self._so_far}", self.exit_code)
