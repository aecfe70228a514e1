"""HTTP exchanges that end: one limit on all of an exchange, and its sockets are closed when it is given up.

A socket's time-out counts from one byte to the next, so a server that sends one byte per second could block a reader
for ever.  So each exchange runs in a thread of its own.  When its time is up, its sockets are shut down: the thread
gets an error, closes the connection and ends.  Only a DNS lookup cannot be cut short; it ends by its own time-out.
"""

import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import cache
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
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._is_cut = False

    def add(self, each: socket.socket) -> None:
        with self._lock:
            self._open.append(each)
            if self._is_cut:
                _shut(each)

    def cut(self) -> None:
        with self._lock:
            self._is_cut = True
            for each in self._open:
                _shut(each)


def _shut(each: socket.socket) -> None:
    with suppress(OSError):  # closed already, or never connected
        socket.socket.shutdown(each, socket.SHUT_RDWR)  # that of TLS would take the session from under its reader


def within(seconds: float, work: Callable[[], T], is_ending: Callable[[], bool] | None = None) -> T:
    """Return what `work` returns, or raise what it raises, but wait at most so many seconds.

    Args:
        seconds: for all of it.
        work: exchanges data through the connections of `cuttable` pools only.
        is_ending: returns whether the program is told to end: then at most `HURRIED_SECONDS` are left.

    Raises:
        GivenUp: the work was not done in time; its sockets are shut down.
    """
    future: Future[T] = Future()
    sockets = _Sockets()
    threading.Thread(target=_settle, args=(future, work, sockets), name="request", daemon=True).start()
    is_done = False
    try:
        is_done = _is_done(future, max(0.0, min(seconds, threading.TIMEOUT_MAX)), is_ending)
    finally:  # also where a signal's handler raises
        if not is_done:
            sockets.cut()
    if not is_done:
        raise GivenUp
    return future.result()


def _is_done(future: "Future[T]", seconds: float, is_ending: Callable[[], bool] | None) -> bool:
    if is_ending is None:
        return bool(wait([future], timeout=seconds).done)
    while seconds > 0 and not is_ending():
        if wait([future], timeout=min(seconds, _BLINK_SECONDS)).done:
            return True
        seconds -= _BLINK_SECONDS
    return bool(wait([future], timeout=max(0.0, min(seconds, HURRIED_SECONDS))).done)


def _settle(future: "Future[T]", work: Callable[[], T], sockets: _Sockets) -> None:
    _here.sockets = sockets
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001  nothing is swallowed: it is raised where the result is waited for
        future.set_exception(error)


class _Cuttable:
    """A connection that tells the exchange of its thread which sockets it uses."""

    sock: socket.socket | None

    def _new_conn(self) -> socket.socket:  # before TLS, and before a proxy is asked to connect
        made: socket.socket = super()._new_conn()  # type: ignore[misc]  # that of the class that is mixed in
        _note(made)
        return made

    def connect(self) -> None:
        super().connect()  # type: ignore[misc]
        _note(self.sock)

    def request(self, *args: Any, **kwargs: Any) -> None:
        _note(self.sock)  # one that is used again
        super().request(*args, **kwargs)  # type: ignore[misc]


def _note(each: socket.socket | None) -> None:
    sockets = getattr(_here, "sockets", None)
    if each is not None and sockets is not None:
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
