"""Evictions in flight: several requests at a time, with the ledger of one after the other.

Only the request itself runs in a thread; all that is decided is decided here, in the order of the plan:

1. Before a pod is asked about, those in flight with an owner or a PDB of its own are waited for: no answer about it
   can depend on what has not come yet.  What others free when they go, room and shares of limits, only helps it.
2. If it is refused all the same, all in flight are waited for, and it is asked about again: then the refusal is final.
3. Before its request is sent, it is counted against the limits, so that no doubt exceeds them.
4. Verdicts are settled in the order in which the pods were asked for.

For example, with two in flight, pods a, b and c of three owners, and a limit of 2: a and b are sent; c is refused by
the limit, so both are waited for.  b was refused by its PDB, and gives its share of the limit back: c is sent.
"""

from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import NamedTuple

from rebalancer.errors import CycleStopped
from rebalancer.eviction.verdict import Verdict

#: What two pods in flight must not share: owners and PDBs.
Keys = Collection[object]


class _Flying(NamedTuple):
    """A request under way, told of its verdict; or, without a future, what to record after those before it."""

    keys: Keys
    verdict: "Future[Verdict] | None"
    settle: Callable[[Verdict | None], None]


class InFlight:
    """The requests under way, so many at a time at most."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._threads: ThreadPoolExecutor | None = None
        self._flying: deque[_Flying] = deque()
        self._keys: set[object] = set()
        self._sent = 0

    def __bool__(self) -> bool:
        return bool(self._flying)

    def make_way(self, keys: Keys) -> None:
        """Settle verdicts until none shares a key and one more may fly; raises CycleStopped, with all settled."""
        while self._flying and (self._sent >= self._most or not self._keys.isdisjoint(keys)):
            self._land_first()

    def send(self, keys: Keys, ask: Callable[[], Verdict], settle: Callable[[Verdict | None], None]) -> None:
        """Send a request; `settle` is called later, in this thread."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._most, thread_name_prefix="eviction")
        self._keys.update(keys)
        self._sent += 1
        self._flying.append(_Flying(keys, self._threads.submit(copy_context().run, ask), settle))

    def afterwards(self, record: Callable[[], None]) -> None:
        """Do something once all that was sent so far is settled: at once where nothing is in flight."""
        if self._flying:
            self._flying.append(_Flying((), None, lambda _: record()))
        else:
            record()

    def land(self) -> None:
        """Wait for all verdicts and settle them; raises CycleStopped as `make_way`."""
        while self._flying:
            self._land_first()

    def close(self) -> None:
        """End the threads; nothing is in flight any more."""
        if self._threads is not None:
            self._threads.shutdown()

    def _land_first(self) -> None:
        first = self._flying.popleft()
        if first.verdict is None:
            first.settle(None)
            return
        self._keys.difference_update(first.keys)
        self._sent -= 1
        try:
            verdict = first.verdict.result()
        except CycleStopped:
            first.settle(None)
            self.land()  # those sent after it may have been granted before the end came
            raise
        first.settle(verdict)
