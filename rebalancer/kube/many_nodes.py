"""Runs one function for many nodes, several at once."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from rebalancer.errors import ClusterError

#: Every write to a node is sent to all clients that watch nodes, so there must not be too many at once.
_AT_ONCE = 8


def on_each(names: Iterable[str], act: Callable[[str], None]) -> dict[str, ClusterError]:
    """Act on every node, and return what went wrong, by the node's name; an error on one does not stop the others."""
    pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="marks")
    try:
        futures = {name: pool.submit(act, name) for name in sorted(set(names))}
        return {name: error for name, future in futures.items() if (error := _error(future))}
    finally:
        pool.shutdown(cancel_futures=True)


def _error(future: "Future[None]") -> ClusterError | None:
    try:
        future.result()
    except ClusterError as error:
        return error
    return None
