"""What containers used over days, asked of Prometheus in pieces that it can bear, several at once.

1. The first piece is an hour.  It tells how many series there are, and so how long a piece may be: of about 150,000
   values.
2. A piece that the server refuses, does not answer in time or answers in part (its `warnings`) is asked again as two
   halves, and the pieces after it are as short as these.
3. A piece that cannot be cut any more is left out, with the reason; after some of these in a row nothing more is asked.
   Where the shortest piece still has a warning, shorter ones do not help: then answers are taken as they are, and the
   times that may be partial are told.
4. CPU and memory are joined by namespace, pod, container and time; where one of the two is missing there is no sample.

Example: of 10,000 containers 14 days in steps of 5 minutes are 269 pieces of 15 steps.
"""

import threading
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isfinite
from typing import NamedTuple

import msgspec

from rebalancer.errors import SourceError
from rebalancer.policy.usage import ContainerQuery, HistoryQueries
from rebalancer.recommendation.samples import KIBI, MISSING, ContainerOfPod, MeasuredContainers

_PIECE_SECONDS = 12 * 3600
_MOST_VALUES = 150_000
_FEWEST_STEPS = 12
_MOST_IN_A_ROW = 4
_MILLI = 1000
_ROUND_UP = 1 - 1e-9
_NAMED_GAPS = 3


class TimedValue(msgspec.Struct, array_like=True, gc=False):
    """A value, and its time in seconds since 1970."""

    time: float
    value: float


class RangeSeries(NamedTuple):
    """A series of a range: its labels and its values, in the order of time."""

    labels: Mapping[str, str]
    values: Sequence[TimedValue]


class RangeAnswer(NamedTuple):
    """What a server answers, and what it says beside it, for example that this is not all."""

    series: Sequence[RangeSeries]
    warnings: Sequence[str] = ()


#: Asks a query from a time to another one, with so many seconds from sample to sample; raises SourceError.
AskRange = Callable[[str, float, float, float], RangeAnswer]


@dataclass(frozen=True, slots=True)
class Span:
    """The time that is asked about: seconds since 1970, and seconds from sample to sample."""

    start: int
    end: int
    step: int


@dataclass(slots=True)
class ContainerHistory:
    """What was measured, and what is missing of it."""

    measured: MeasuredContainers
    missing: list[str] = field(default_factory=list)


class _Part(NamedTuple):
    """The samples of one container in one piece: the place of the first one, then one for each time."""

    name: ContainerOfPod
    first: int
    cpu: "array[int]"
    memory: "array[int]"


def read_history(
    asks: Sequence[AskRange],
    queries: HistoryQueries,
    span: Span,
    tell: Callable[[int, int], None] = lambda _done, _of: None,
) -> ContainerHistory:
    """Return what containers used.

    Args:
        asks: ask Prometheus, one of them for each piece that is asked for at the same time.
        queries: for CPU and memory.
        span: of the history.
        tell: called with the seconds that are done, and with all of them; by one thread at a time.

    Raises:
        SourceError: nothing can be had.
    """
    reading = _Reading(range(span.start, span.end + 1, span.step), queries, tell)
    reading.read_first(asks[0])
    try:
        with ThreadPoolExecutor(len(asks), "history") as pool:
            for worker in [pool.submit(reading.work, ask) for ask in asks]:
                worker.result()
    finally:
        reading.stop()
    return ContainerHistory(reading.measured, reading.missing())


class _Reading:
    """Deals pieces out to threads, and takes in what they bring; the arguments are those of `read_history`."""

    def __init__(self, times: range, queries: HistoryQueries, tell: Callable[[int, int], None]) -> None:
        self.measured = MeasuredContainers(times)
        self._times = times
        self._queries = queries
        self._tell = tell
        self._lock = threading.Lock()
        self._next = 0
        self._done = 0
        self._usual = self._longest = max(1, _PIECE_SECONDS // times.step)
        self._failed = 0
        self._is_over = False
        self._takes_parts = False
        self._gaps: dict[str, list[range]] = {}

    def read_first(self, ask: AskRange) -> None:
        """Read a short piece, to learn how long the others may be."""
        self._next = min(_FEWEST_STEPS, len(self._times))
        self._read(ask, range(self._next))

    def work(self, ask: AskRange) -> None:
        """Read pieces until there are none.

        Raises:
            SourceError: several pieces in a row could not be had.
        """
        try:
            while piece := self._dealt():
                self._read(ask, piece)
        finally:  # on an error the others shall end too
            self.stop()

    def stop(self) -> None:
        """Deal nothing out any more."""
        self._is_over = True

    def missing(self) -> list[str]:
        """Return what is missing or may be partial, a line for each reason."""
        return [self._in_words(why, sorted(gaps, key=lambda each: each.start)) for why, gaps in self._gaps.items()]

    def _dealt(self) -> range:
        with self._lock:
            first = self._next
            self._next = first if self._is_over else min(first + self._longest, len(self._times))
            return range(first, self._next)

    def _read(self, ask: AskRange, piece: range) -> None:
        first, last, step = self._times[piece[0]], self._times[piece[-1]], self._times.step
        try:
            cpu, memory = (ask(each.query, first, last, step) for each in (self._queries.cpu, self._queries.memory))
            found = list(self._joined(cpu.series, memory.series))
        except SourceError as error:
            if not self._halved(ask, piece):
                self._lost(piece, error)
            return
        warnings = sorted({*cpu.warnings, *memory.warnings})
        if warnings and not self._takes_parts:
            if self._halved(ask, piece):
                return
            self._takes_parts, self._longest = True, self._usual
        self._took(piece, found, warnings)

    def _halved(self, ask: AskRange, piece: range) -> bool:
        """Read a piece as two halves; return whether it could be cut."""
        if len(piece) <= _FEWEST_STEPS:
            return False
        half = len(piece) // 2
        with self._lock:
            self._longest = max(_FEWEST_STEPS, min(self._longest, half))
        self._read(ask, piece[:half])
        length = self._longest  # the first half may have taught more
        for first in range(half, len(piece), length):
            self._read(ask, piece[first : first + length])
        return True

    def _lost(self, piece: range, error: SourceError) -> None:
        with self._lock:
            self._failed += 1
            self._gaps.setdefault(f"are missing: {error}", []).append(piece)
            self._add_done(piece)
        if self._failed >= _MOST_IN_A_ROW:
            raise error

    def _took(self, piece: range, found: Sequence[_Part], warnings: Sequence[str]) -> None:
        with self._lock:
            self._failed = 0
            for each in found:
                self.measured.put(*each)
            for text in warnings:
                self._gaps.setdefault(f"may be partial: {text}", []).append(piece)
            self._longest = min(self._longest, max(_FEWEST_STEPS, _MOST_VALUES // max(1, len(found))))
            self._add_done(piece)

    def _add_done(self, piece: range) -> None:
        self._done += len(piece)
        self._tell(self._done * self._times.step, len(self._times) * self._times.step)

    def _in_words(self, why: str, gaps: Sequence[range]) -> str:
        hours = sum(map(len, gaps)) * self._times.step / 3600
        ends = [f"{self._clock(each[0])} to {self._clock(each[-1])}" for each in gaps[:_NAMED_GAPS]]
        more = f" and {len(gaps) - _NAMED_GAPS} more" if len(gaps) > _NAMED_GAPS else ""
        return f"{hours:.1f} of {len(self._times) * self._times.step / 3600:.1f} hours ({', '.join(ends)}{more}) {why}"

    def _clock(self, place: int) -> str:
        return f"{datetime.fromtimestamp(self._times[place], UTC):%Y-%m-%dT%H:%MZ}"

    def _joined(self, cpu: Sequence[RangeSeries], memory: Sequence[RangeSeries]) -> Iterator[_Part]:
        """Yield the containers that have both; those of which no time has both are left out."""
        used = _by_container(memory, self._queries.memory)
        for name, cores in _by_container(cpu, self._queries.cpu).items():
            found = _side_by_side(cores, used.get(name, ()), self._times)
            if found:
                yield _Part(name, *found)


def _by_container(series: Sequence[RangeSeries], query: ContainerQuery) -> dict[ContainerOfPod, Sequence[TimedValue]]:
    """Return the values of each container.

    Raises:
        SourceError: a label is missing, or there are two series of a container.
    """
    labels = (query.labels.namespace, query.labels.pod, query.labels.container)
    found: dict[ContainerOfPod, Sequence[TimedValue]] = {}
    for each in series:
        absent = [label for label in labels if not each.labels.get(label)]
        if absent:
            raise SourceError(f"a series has no label {', '.join(absent)}: sum by ({', '.join(labels)})")
        found[ContainerOfPod(*(each.labels[label] for label in labels))] = each.values
    if len(found) < len(series):
        raise SourceError(f"there are two series of one container: sum by ({', '.join(labels)})")
    return found


_Sides = tuple[int, "array[int]", "array[int]"]


def _side_by_side(cpu: Sequence[TimedValue], memory: Sequence[TimedValue], times: range) -> _Sides | None:
    """Return the place of the first time and both columns; None if no time has both."""
    if not cpu or not memory:
        return None
    begins, ends = cpu[0].time == memory[0].time, cpu[-1].time == memory[-1].time
    whole = len(cpu) == len(memory) == (cpu[-1].time - cpu[0].time) / times.step + 1
    if begins and ends and whole:
        try:
            cores = array("I", [int(each.value * _MILLI + 0.5) for each in cpu])
            return times.index(round(cpu[0].time)), cores, array("I", [int(m.value / KIBI + _ROUND_UP) for m in memory])
        except (ValueError, OverflowError):
            pass  # some are not a number, negative, or beyond all bounds
    return _one_by_one(cpu, memory, times)


def _one_by_one(cpu: Sequence[TimedValue], memory: Sequence[TimedValue], times: range) -> _Sides | None:
    at = {each.time: each.value for each in memory}
    both = {
        times.index(round(each.time)): (each.value * _MILLI + 0.5, at[each.time] / KIBI + _ROUND_UP)
        for each in cpu
        if _is_amount(each.value * _MILLI) and _is_amount(at.get(each.time, -1.0) / KIBI)
    }
    if not both:
        return None
    first, last = min(both), max(both)
    columns = zip(*(both.get(place, (MISSING, MISSING)) for place in range(first, last + 1)), strict=True)
    cores, used = (array("I", map(int, column)) for column in columns)
    return first, cores, used


def _is_amount(value: float) -> bool:
    return isfinite(value) and 0 <= value < MISSING - 1
