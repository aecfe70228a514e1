"""What containers used over days, asked of Prometheus in pieces that it can bear, several at once.

1. The first piece is an hour.  It tells how many series there are, and so how long a piece may be: of about 160,000
   values.
2. A piece that the server refuses, does not answer in time or answers in part (its `warnings`) is asked again as two
   halves, and the pieces after it are as short as these.
3. A piece that cannot be cut any more is left out, with the reason; after some of these in a row nothing more is asked.
   Where the shortest piece still has a warning, shorter ones do not help: then answers are taken as they are, and the
   report names the times that may be partial.
4. CPU and memory are joined by namespace, pod, container and time; where one of the two is missing there is no sample.

Example: of 10,000 containers 14 days in steps of 5 minutes are 253 pieces of 16 steps.
"""

from array import array
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from struct import pack
from typing import NamedTuple, Self

import msgspec
from pydantic import Field, model_validator

from rebalancer.errors import SourceError
from rebalancer.policy.arguments import Part
from rebalancer.policy.usage import PodLabels, UsageQuery
from rebalancer.recommendation.samples import MISSING, ContainerOfPod, MeasuredContainers
from rebalancer.usage.sample_age import usable

_PIECE_SECONDS = 12 * 3600
_MOST_VALUES = 160_000
_FEWEST_STEPS = 12
_MOST_IN_A_ROW = 4
_NAMED_GAPS = 3
_NO_NUMBERS = "the query gives no series of numbers"


class ContainerLabels(PodLabels):
    """The labels that name a container of a pod."""

    container: str = Field("container", min_length=1, description="The label with the container's name.")


class ContainerQuery(UsageQuery):
    """What containers used of one resource; asked over a range."""

    labels: ContainerLabels = Field(ContainerLabels(), description="The labels that name the container.")


class HistoryQueries(Part):
    """How the history of containers is asked for; by default by cAdvisor's metrics."""

    cpu: ContainerQuery = ContainerQuery(
        query="sum by (namespace, pod, container) "
        '(rate(container_cpu_usage_seconds_total{container!="",container!="POD"}[5m]))',
        unit="cores",
        base=None,
    )
    memory: ContainerQuery = ContainerQuery(
        query='sum by (namespace, pod, container) (container_memory_working_set_bytes{container!="",container!="POD"})',
        unit="bytes",
        base=None,
    )

    @model_validator(mode="after")
    def _in_amounts(self) -> Self:
        if (self.cpu.unit, self.memory.unit) != ("cores", "bytes"):
            raise ValueError(
                "the unit of cpu is cores and that of memory bytes: a share of a node says nothing about a container"
            )
        return self


class TimedValue(NamedTuple):
    """A value, and its time in seconds since 1970."""

    time: float
    value: float


class RangeSeries(msgspec.Struct, frozen=True, gc=False, rename={"text": "values"}):
    """A series of a range as JSON: its labels, and its values like `[[1767225600,"0.25"],...]`."""

    metric: msgspec.Raw
    text: msgspec.Raw

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels; raises SourceError if they cannot be read."""
        try:
            return msgspec.json.decode(self.metric, type=dict[str, str])
        except msgspec.MsgspecError as error:
            raise SourceError(_NO_NUMBERS) from error

    @property
    def values(self) -> list[TimedValue]:
        """Its values, in the order of time; raises SourceError if one is not a number."""
        try:
            pairs = msgspec.json.decode(self.text, type=list[tuple[float, str]])
            return [TimedValue(time, float(value)) for time, value in pairs]
        except (msgspec.MsgspecError, ValueError) as error:
            raise SourceError(_NO_NUMBERS) from error


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


class _Column(NamedTuple):
    """The values of a series and their places among the times; the places are a range where none is left out."""

    places: Sequence[int]
    values: "array[float]"


class _Answers(NamedTuple):
    cpu: Mapping[ContainerOfPod, _Column]
    memory: Mapping[ContainerOfPod, _Column]
    warnings: Sequence[str]


def read_history(
    asks: Sequence[AskRange],
    queries: HistoryQueries,
    span: Span,
    tell: Callable[[int, int], None] = lambda _done, _of: None,
) -> ContainerHistory:
    """Return what containers used, asked in parallel by `asks`; `tell` gets the seconds done, and all."""
    reading = _Reading(range(span.start, span.end + 1, span.step), queries, tell)
    pool = ThreadPoolExecutor(len(asks), "history")
    try:
        reading.read(asks, pool)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return ContainerHistory(reading.measured, reading.missing())


class _Reading:
    """Deals pieces out to threads that ask and decode, and takes in what they bring, in the order in which it comes."""

    def __init__(self, times: range, queries: HistoryQueries, tell: Callable[[int, int], None]) -> None:
        self.measured = MeasuredContainers(times)
        self._times = times
        self._queries = queries
        self._known = {each.labels: dict[bytes, ContainerOfPod]() for each in (queries.cpu, queries.memory)}
        self._tell = tell
        self._again: list[range] = []
        self._next = 0
        self._done = 0
        self._usual = self._longest = max(1, _PIECE_SECONDS // times.step)
        self._failed = 0
        self._takes_parts = False
        self._gaps: dict[str, list[range]] = {}

    def read(self, asks: Sequence[AskRange], pool: ThreadPoolExecutor) -> None:
        first = range(min(_FEWEST_STEPS, len(self._times)))
        self._next = len(first)
        self._take(first, pool.submit(self._asked, asks[0], first))
        idle, asked = list(asks), dict[Future[_Answers], tuple[AskRange, range]]()
        while True:
            while idle and (piece := self._dealt()):
                ask = idle.pop()
                asked[pool.submit(self._asked, ask, piece)] = ask, piece
            if not asked:
                return
            for future in wait(asked, return_when=FIRST_COMPLETED).done:
                ask, piece = asked.pop(future)
                idle.append(ask)
                self._take(piece, future)

    def missing(self) -> list[str]:
        return [self._in_words(why, sorted(gaps, key=lambda each: each.start)) for why, gaps in self._gaps.items()]

    def _dealt(self) -> range:
        """Return the next piece, no longer than it may be now; an empty one if there is none."""
        if self._again:
            piece = self._again.pop()
            if len(piece) > self._longest:
                self._again.append(piece[self._longest :])
            return piece[: self._longest]
        first, self._next = self._next, min(self._next + self._longest, len(self._times))
        return range(first, self._next)

    def _asked(self, ask: AskRange, piece: range) -> _Answers:
        """Ask about a piece, in a thread; the text of one answer is gone before the next is asked for."""
        found: list[dict[ContainerOfPod, _Column]] = []
        warnings: set[str] = set()
        for query in (self._queries.cpu, self._queries.memory):
            answer = ask(query.query, self._times[piece[0]], self._times[piece[-1]], self._times.step)
            decoder, named = _Decoder(self._times), _named(answer.series, query.labels, self._known[query.labels])
            found.append({name: decoder.read(series) for name, series in named.items()})
            warnings.update(answer.warnings)
            del answer, named
        cpu, memory = found
        return _Answers(cpu, memory, sorted(warnings))

    def _take(self, piece: range, future: Future[_Answers]) -> None:
        try:
            answers = future.result()
        except SourceError as error:
            if not self._halved(piece):
                self._lost(piece, error)
            return
        if answers.warnings and not self._takes_parts:
            if self._halved(piece):
                return
            self._takes_parts, self._longest = True, self._usual
        self._took(piece, answers)

    def _halved(self, piece: range) -> bool:
        """Have a piece asked again, and all pieces from now on, in the size of its halves; return whether it can be."""
        if len(piece) <= _FEWEST_STEPS:
            return False
        self._longest = max(_FEWEST_STEPS, min(self._longest, len(piece) // 2))
        self._again.append(piece)
        return True

    def _lost(self, piece: range, error: SourceError) -> None:
        self._failed += 1
        self._gaps.setdefault(f"are missing: {error}", []).append(piece)
        self._add_done(piece)
        if self._failed >= _MOST_IN_A_ROW:
            raise error

    def _took(self, piece: range, answers: _Answers) -> None:
        self._failed = 0
        for name, cores in answers.cpu.items():
            side = name in answers.memory and _side_by_side(cores, answers.memory[name])
            if side:
                self.measured.put(name, *side)
        for text in answers.warnings:
            self._gaps.setdefault(f"may be partial: {text}", []).append(piece)
        self._longest = min(self._longest, max(_FEWEST_STEPS, _MOST_VALUES // max(1, len(answers.cpu))))
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


def _named(
    series: Sequence[RangeSeries], labels: ContainerLabels, known: dict[bytes, ContainerOfPod]
) -> dict[ContainerOfPod, RangeSeries]:
    """Return the series of each container; labels that are known are not decoded again.

    Raises SourceError if a label is missing, or if a container has two series.
    """
    names = (labels.namespace, labels.pod, labels.container)
    found, cure = {}, f"sum by ({', '.join(names)})"
    for each in series:
        if (written := bytes(each.metric)) not in known:
            told = each.labels
            if absent := [label for label in names if not told.get(label)]:
                raise SourceError(f"a series has no label {', '.join(absent)}: {cure}")
            known[written] = ContainerOfPod(*(told[label] for label in names))
        found[known[written]] = each
    if len(found) < len(series):
        raise SourceError(f"there are two series of one container: {cure}")
    return found


class _Decoder:
    """Decodes values at a third of the cost of JSON: the series of an answer have the same times, as a rule.

    What is between the values, `[[1767225600,` and so on, is compared with that of the series before.  Where it is the
    same, so are the times, and nothing but the values is read.
    """

    def __init__(self, times: range) -> None:
        self._times = times
        self._between: list[str] = []
        self._places: Sequence[int] = ()

    def read(self, series: RangeSeries) -> _Column:
        """Return a series without values that are not usable; raises SourceError if it has no numbers."""
        try:
            text = str(series.text, "ascii")
            parts = text.split('"')
            if parts[::2] != self._between:
                places = [self._times.index(round(each.time)) for each in series.values]
                whole = range(places[0], places[-1] + 1) if places else range(0)
                self._places, self._between = (whole if len(whole) == len(places) else places), parts[::2]
            written = parts[1::2]
            values = array("f", pack(f"{len(written)}f", *map(float, written)))  # infinite if beyond four bytes
        except (ValueError, OverflowError) as error:
            raise SourceError(_NO_NUMBERS) from error
        if '"-' in text or "N" in text or not usable(max(values, default=0.0)):  # negative, `NaN`, or too large
            pairs = [each for each in zip(self._places, values, strict=True) if usable(each[1])]
            return _Column([place for place, _ in pairs], array("f", [value for _, value in pairs]))
        return _Column(self._places, values)


def _side_by_side(cpu: _Column, memory: _Column) -> tuple[int, "array[float]", "array[float]"] | None:
    """Return CPU and memory from the first time on that has both, after its place; None if no time has."""
    if isinstance(cpu.places, range) and cpu.places == memory.places:
        return (cpu.places[0], cpu.values, memory.values) if cpu.places else None
    at = dict(zip(memory.places, memory.values, strict=True))
    both = {place: (cores, at[place]) for place, cores in zip(*cpu, strict=True) if place in at}
    if not both:
        return None
    first, last = min(both), max(both)
    cores, used = zip(*(both.get(place, (MISSING, MISSING)) for place in range(first, last + 1)), strict=True)
    return first, array("f", cores), array("f", used)
