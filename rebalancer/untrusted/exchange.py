"""HTTP exchanges that end: one limit on all of an exchange, and its sockets are closed when it is given up.

A socket's time-out counts from one byte to the next, so a server that sends one byte per second could block a reader
for ever.  So another thread runs each exchange.  When its time is up, its sockets are shut down: the thread gets
an error, closes the connection and ends.  Only a DNS lookup cannot be cut short; it ends by its own time-out.
"""

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from http.client import BadStatusLine
from typing import Any, TypeVar

import urllib3

T = TypeVar("T")
ManagerT = TypeVar("ManagerT", bound=urllib3.PoolManager)

#: How long an exchange may still take once the program is told to end: within 30 s it has to look at pods in doubt,
#: deliver Events, take taints off and give the Lease back as well.
HURRIED_SECONDS = 4.0
#: Between two looks at whether the program is told to end.
_BLINK_SECONDS = 0.1

_here = threading.local()


class GivenUp(Exception):  # noqa: N818  it says what happened
    """The exchange took too long, or the program is told to end; its result is ignored."""


class _Sockets:
    """The sockets of one exchange."""

    def __init__(self) -> None:
        self.is_cut = False
        self._open: list[socket.socket] = []

    def add(self, each: socket.socket) -> None:
        self._open.append(each)  # before the look, as `cut` looks after its mark: one of the two sees the other
        if self.is_cut:
            self.cut()

    def cut(self) -> None:
        self.is_cut = True
        for each in tuple(self._open):
            with suppress(OSError):  # closed already, or never connected
                socket.socket.shutdown(each, socket.SHUT_RDWR)  # TLS's own would take the session from its reader


def within(seconds: float, work: Callable[[], T], is_ending: Callable[[], bool] = lambda: False) -> T:
    """Return what `work` returns, or raise what it raises, but wait at most so many seconds.

    It exchanges data through the connections of `cuttable` pools only.  Once `is_ending` returns that the program is
    told to end, at most `HURRIED_SECONDS` are left.  Raises GivenUp if the work was not done in time; its sockets are
    shut down.
    """
    sockets = _Sockets()
    outcome = begin(work, sockets)
    try:
        while seconds > 0 and not outcome.done():
            is_last = is_ending()
            step = min(seconds, HURRIED_SECONDS if is_last else _BLINK_SECONDS)
            with suppress(TimeoutError):
                outcome.exception(step)
            seconds = 0 if is_last else seconds - step
        if outcome.done():
            return outcome.result()
        raise GivenUp
    finally:  # also where a signal's handler raises
        if not outcome.done():
            sockets.cut()


def begin(work: Callable[[], T], sockets: _Sockets | None = None) -> "Future[T]":
    """Let another thread do the work, which ends by itself; a program that ends does not wait for it."""
    outcome: Future[T] = Future()

    def run() -> None:
        _here.sockets = sockets
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001  nothing is swallowed: it is raised where the result is waited for
            outcome.set_exception(error)

    threading.Thread(target=run, name="request", daemon=True).start()
    return outcome


class _Cuttable:
    """A connection that tells the exchange of its thread which sockets it uses."""

    sock: socket.socket | None

    def _new_conn(self) -> socket.socket:  # before TLS, and before a proxy is asked to connect
        made: socket.socket = super()._new_conn()  # type: ignore[misc]  # that of the class that is mixed in
        _note(made)
        return made

    def request(self, *args: Any, **kwargs: Any) -> None:
        _note(self.sock)  # that of TLS, or one that is used again
        super().request(*args, **kwargs)  # type: ignore[misc]


def _note(each: socket.socket | None) -> None:
    if each is not None and (sockets := getattr(_here, "sockets", None)):
        sockets.add(each)


def cuttable(manager: ManagerT) -> ManagerT:
    """Make the connections of a pool manager, or of a proxy's, ones that `within` can cut; return the manager."""
    pools: Any = manager.pool_classes_by_scheme
    manager.pool_classes_by_scheme = {scheme: _cuttable_pool(pool) for scheme, pool in pools.items()}
    return manager


@cache
def _cuttable_pool(pool: Any) -> Any:
    if issubclass(pool.ConnectionCls, _Cuttable):
        return pool
    connection = type(pool.ConnectionCls.__name__, (_Cuttable, pool.ConnectionCls), {})
    return type(pool.__name__, (pool,), {"ConnectionCls": connection})


def words_of(error: BaseException) -> str:
    """Return the system's words for what went wrong, without those of the layers in between."""
    for each in _causes_of(error):
        if isinstance(each, OSError):
            return each.strerror or str(each)
        if isinstance(each, BadStatusLine):
            return f"the answer is not HTTP, but begins with {str(each)!r}"
    return str(error.args[0]) if error.args else type(error).__name__


def _causes_of(error: BaseException) -> Iterator[BaseException]:
    """Yield what an error was made of, the nearest first: urllib3 wraps errors more than once."""
    for each in (*error.args, error.__cause__, error.__context__):
        if isinstance(each, BaseException):
            yield each
            yield from _causes_of(each)
