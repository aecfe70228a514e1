"""Holds signals back for a moment in which none may end the program."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@contextmanager
def held_signals() -> Iterator[Callable[[], None]]:
    """Let no signal raise while this is entered; what came takes effect when it is left.

    Only the main thread hears signals (Python's `signal` module), so in any other there is nothing to hold.

    Yields:
        a function that lets signals through again before the end, and raises what came meanwhile.
    """
    before: dict[signal.Signals, Callable[[int, FrameType | None], object]] = {}
    came: list[int] = []

    def release() -> None:
        while before:
            number, handler = before.popitem()
            signal.signal(number, handler)
        while came:
            signal.raise_signal(came.pop(0))

    try:
        for number in _SIGNALS if threading.current_thread() is threading.main_thread() else ():
            handler = signal.getsignal(number)
            if callable(handler):
                before[number] = handler
                signal.signal(number, lambda number, _frame: came.append(number))
        yield release
    finally:
        release()
