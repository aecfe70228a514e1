"""Formats progress: what a run is doing at the moment.  It affects no decision and reads no clock."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from rebalancer.engine.ledger import Entry
from rebalancer.eviction.verdict import Refused


@dataclass(frozen=True, slots=True)
class Stage:
    """How far a run is."""

    doing: str  # what it does, like `reading pods`
    done: int | None = None  # how many so far; None if nothing is counted
    of: int | None = None  # of how many; None if that is not known

    @property
    def words(self) -> str:
        """The line: `reading pods: 1,500 of 3,000`."""
        counted = "" if self.done is None else f": {self.done:,}"
        return self.doing + counted + ("" if self.of is None else f" of {self.of:,}")


#: Stages in words.
_WORDS = {"read": "reading the cluster", "plan": "planning", "evict": "evicting", "events": "writing Events"}


class Progress:
    """Turns the steps of a run into stages, and tells these; what shows them overrides `shown` and `tell`."""

    def __init__(self) -> None:
        self.planned: int | None = None  # how many evictions the plan has
        self._stage = self._strategy = ""
        self._gone = 0

    def shown(self) -> AbstractContextManager[object]:
        """Return what shows signs of life while it is entered, and removes them afterwards."""
        return nullcontext()

    def tell(self, standing: Stage) -> None:
        """Record how far the run is; called often, so it must be cheap."""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Show signs of life of a stage: `read`, `plan`, `evict` or `events`."""
        self._stage, self._strategy, self._gone = name, "", 0
        self.planned = None if name == "read" else self.planned
        self.tell(Stage(_WORDS.get(name, name)))
        with self.shown():
            yield

    def reading(self, resource: str, count: int, more: int | None) -> None:
        """Report a page: how many objects were read so far, and how many are to come if the server says so."""
        self.tell(Stage(f"reading {resource}", count, None if more is None else count + more))

    def around(self, _profile: str, strategy: str) -> AbstractContextManager[object]:
        """Report that a strategy runs (a `rebalancer.engine.cycle.Around`)."""
        self._strategy = strategy
        self._tell_strategy()
        return nullcontext()

    def observed(self, entry: Entry) -> None:
        """Count the pod if it is gone; a refusal does not count."""
        if entry.verdict.gone and not isinstance(entry.verdict, Refused):
            self._gone += 1
            self._tell_strategy()

    def _tell_strategy(self) -> None:
        doing = f"{_WORDS.get(self._stage, self._stage)}: {self._strategy}"
        self.tell(Stage(f"{doing}, pods", self._gone, self.planned) if self._stage == "evict" else Stage(doing))
