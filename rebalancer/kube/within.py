"""A limit on the total time of a call that may block."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

T = TypeVar("T")


class GivenUp(Exception):  # noqa: N818  it says what happened
    """The call took too long; its result is ignored."""


def within(seconds: float, work: Callable[[], T]) -> T:
    """Return what `work` returns, or raise what it raises, but wait at most so many seconds.

    A socket's time-out counts from one byte to the next, so a server that sends one byte per second could block a
    reader for ever; and a DNS lookup has no time-out at all.  So the work is done in a thread of its own, which is
    abandoned when the time is up.

    Raises:
        GivenUp: the work was not done in time.
    """
    future: Future[T] = Future()
    threading.Thread(target=_settle, args=(future, work), name="request", daemon=True).start()
    if not wait([future], timeout=max(0.0, min(seconds, threading.TIMEOUT_MAX))).done:
        raise GivenUp
    return future.result()


def _settle(future: "Future[T]", work: Callable[[], T]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001  nothing is swallowed: it is raised where the result is waited for
        future.set_exception(error)
