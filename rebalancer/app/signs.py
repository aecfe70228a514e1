"""Signs of life: what a run is at, told on its way.  Nothing is decided by them, and no clock is read for them."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from rebalancer.engine.ledger import Entry
from rebalancer.report.standing import Standing

#: Of the stages that run strategies, in words.
_RUNNING = {"plan": "planning", "evict": "evicting"}
_STARTING = {"read": "reading the cluster", "events": "writing Events"}


class Progress(Protocol):
    """Shows signs of life, or does not."""

    def shown(self) -> AbstractContextManager[object]:
        """Return what shows signs of life as long as it is entered; nothing is left of them afterwards."""
        ...

    def tell(self, standing: Standing) -> None:
        """Take down how far the run is; called often, and must cost nothing."""
        ...


class Silent:
    """Shows nothing."""

    def shown(self) -> AbstractContextManager[object]:
        """Return nothing to speak of."""
        return nullcontext()

    def tell(self, standing: Standing) -> None:
        """Forget it."""


class Signs:
    """Puts the steps of a run into standings.

    Args:
        progress: where these go.
    """

    def __init__(self, progress: Progress | None = None) -> None:
        self._progress = progress or Silent()
        self._planned: int | None = None
        self._limit: int | None = None
        self._left: Callable[[], float] | None = None
        self._stage = ""
        self._strategy = ""
        self._gone = 0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Show signs of life of a stage: `read`, `plan`, `evict` or `events`."""
        self._stage, self._strategy, self._gone = name, "", 0
        self._progress.tell(Standing(_STARTING.get(name, _RUNNING.get(name, name))))
        try:
            with self._progress.shown():
                yield
        finally:
            self._planned = None if name == "evict" else self._planned

    def reading(self, resource: str, count: int, more: int | None) -> None:
        """Tell of a page: how many objects were read so far, and how many are to come if the server says so."""
        self._progress.tell(Standing(f"reading {resource}", count, None if more is None else count + more))

    def planned(self, count: int) -> None:
        """Take down how many evictions were agreed to."""
        self._planned = count

    def evicting(self, limit: int | None, left: Callable[[], float]) -> None:
        """Take down what bounds the evictions to come: the policy's limit, and the seconds until the deadline."""
        self._limit, self._left = limit, left

    def strategy(self, name: str) -> None:
        """Tell that a strategy runs."""
        self._strategy = name
        self._tell()

    def around(self, _profile: str, strategy: str) -> AbstractContextManager[object]:
        """Tell that a strategy runs (a `rebalancer.engine.cycle.Around`)."""
        self.strategy(strategy)
        return nullcontext()

    def observed(self, entry: Entry) -> None:
        """Count a pod that has gone; a refusal is none."""
        if entry.verdict.gone:
            self._gone += 1
            self._tell()

    def _tell(self) -> None:
        doing = f"{_RUNNING.get(self._stage, self._stage)}: {self._strategy}"
        if self._stage == "evict":
            standing = Standing(f"{doing}, pods", self._gone, self._planned, self._limit, self._left)
        else:
            standing = Standing(doing)
        self._progress.tell(standing)
