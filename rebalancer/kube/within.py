"""A limit on the whole time of something that may block."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

T = TypeVar("T")


class GivenUp(Exception):  # noqa: N818  it says what happened
    """It took too long; whatever it still does is ignored."""


def within(seconds: float, work: Callable[[], T]) -> T:
    """Return what `work` returns, or raise what it raises, but wait no longer than so many seconds.

    A socket's time-out counts from one byte to the next, so that a server which sends a byte a second keeps a reader
    for ever; and looking up a name has no time-out at all.  So the work is done in a thread of its own, which is left
    behind when the time is up.

    Raises:
        GivenUp: it was not ready in time.
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
