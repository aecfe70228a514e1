"""What containers used, in columns: 40 million samples take 340 MB, where an object for each would take ten times that.

All times of a history are known before, as a range or a list, and a sample is at one of them.  Each container of each
pod has two columns from its first time to its last one, in which CPU is in cores and memory in bytes, as floats of four
bytes: exact to seven digits, for whole millicores, and for memory in pages of 4 KiB up to 64 GiB.

Example: of times every five minutes for two weeks (4,033), a pod that lived for an hour takes twelve, 96 bytes.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from functools import cached_property
from itertools import compress, groupby
from math import inf
from operator import add
from statistics import median
from typing import NamedTuple

from rebalancer.errors import UsageError

#: Stands in a column where there is no sample.
MISSING = -1.0
_NOTHING = array("f", [MISSING])
_MILLI = 1000


class ContainerOfPod(NamedTuple):
    """Which container of which pod."""

    namespace: str
    pod: str
    container: str


@dataclass(frozen=True, slots=True)
class Columns:
    """Samples in the order of time: seconds since 1970, cores, and bytes, in three columns of one length."""

    times: Sequence[int]
    cpu: "array[float]"
    memory: "array[float]"

    def highest(self, resource: str) -> int:
        """Return the highest value, in millicores or bytes; `resource` is cpu or memory."""
        return millicores(max(self.cpu)) if resource == "cpu" else round(max(self.memory))

    def outside(self, parts: Iterable[tuple[int, int]]) -> "Columns":
        """Return the samples that are in none of these parts of the time, in order; the end of one does not count."""
        times, cpu, memory, at = list[int](), array("f"), array("f"), 0
        for begin, end in (*parts, (inf, inf)):
            first = max(at, bisect_left(self.times, begin))
            times += self.times[at:first]
            cpu += self.cpu[at:first]
            memory += self.memory[at:first]
            at = max(at, bisect_left(self.times, end))
        return Columns(times, cpu, memory)


class PodSeries:
    """The samples of one container of one pod, from its first to its last one of all times of the history."""

    __slots__ = ("_count", "_cpu", "_first", "_memory", "_times")

    def __init__(self, times: Sequence[int]) -> None:
        self._times = times
        self._first = self._count = 0
        self._cpu, self._memory = array("f"), array("f")

    def __len__(self) -> int:
        return self._count

    def put(self, first: int, cpu: "array[float]", memory: "array[float]") -> None:
        """Take in cores and bytes (in both, or MISSING) of consecutive times that are not there yet."""
        self._count += len(cpu) - cpu.count(MISSING)
        self._first = self._first if self._cpu else first
        before, place = self._first - first, max(first - self._first, 0)
        for column, new in ((self._cpu, cpu), (self._memory, memory)):
            column[:0] = _NOTHING * before
            column.extend(_NOTHING * (place + len(new) - len(column)))
            column[place : place + len(new)] = new
        self._first = min(self._first, first)

    def has(self, place: int) -> bool:
        """Return whether there is a sample at a place among the times."""
        return 0 <= place - self._first < len(self._cpu) and self._cpu[place - self._first] != MISSING

    def first_time(self) -> int:
        """Return the time of the first sample; there is one."""
        return self._times[self._first + self._begin()]

    def columns(self) -> Columns:
        """Return the samples."""
        begin = self._begin()
        part = slice(begin, begin + self._count)
        if MISSING not in self._cpu[part]:
            times = self._times[self._first + begin : self._first + begin + self._count]
            return Columns(times, self._cpu[part], self._memory[part])
        there = [used != MISSING for used in self._cpu]
        times = list(compress(self._times[self._first :], there))
        return Columns(times, array("f", compress(self._cpu, there)), array("f", compress(self._memory, there)))

    def _begin(self) -> int:
        return next((place for place, used in enumerate(self._cpu) if used != MISSING), 0)


@dataclass(frozen=True, slots=True)
class PeakSpan:
    """A part of a peak window, from its first sample to its last one, and the day for which it counts."""

    first: int
    last: int
    day: date


class OfPod(NamedTuple):
    """The samples of a container in one of its pods, and the parts of the time in which it started up."""

    pod: str
    series: PodSeries
    starting: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True)
class Samples:
    """The samples of a container in all pods of its workload; columns that were put together stay while it does."""

    pods: Sequence[OfPod]  # a pod may occur once
    spans: Sequence[PeakSpan]  # the peak windows, in the order of time
    is_steady: bool = False  # whether those of starting containers are left out

    def __len__(self) -> int:
        return sum(len(each.series) for each in self.pods)

    def columns(self) -> Sequence[tuple[str, Columns]]:
        """Return the pods that have samples, with these."""
        return self._columns

    @cached_property
    def _columns(self) -> Sequence[tuple[str, Columns]]:
        every = ((each, each.series.columns()) for each in self.pods)
        found = ((each.pod, of.outside(each.starting) if self.is_steady else of) for each, of in every)
        return [(pod, of) for pod, of in found if of.times]

    def steady(self) -> "Samples":
        """Return the samples without those of starting containers."""
        return replace(self, is_steady=True)

    def in_windows(self) -> Iterator[tuple[str, date, Columns]]:
        """Yield the samples in each peak window by pod; a window without samples is left out."""
        for pod, found in self.columns():
            for span in self.spans:
                begin, end = bisect_left(found.times, span.first), bisect_right(found.times, span.last)
                if begin < end:
                    part = slice(begin, end)
                    yield pod, span.day, Columns(found.times[part], found.cpu[part], found.memory[part])

    def daily_peaks(self, resource: str) -> dict[date, int]:
        """Return the highest value of each day in the peak windows, in millicores or bytes."""
        peaks: dict[date, int] = {}
        for _, day, found in self.in_windows():
            peaks[day] = max(peaks.get(day, 0), found.highest(resource))
        return peaks

    def highest(self, resource: str) -> int:
        """Return the highest value of all, in a window or not; 0 without samples."""
        return max((found.highest(resource) for _, found in self.columns()), default=0)


@dataclass(slots=True)
class MeasuredContainers:
    """All that was measured, by container, at these times in order, and in `totals` the cores of all at each time."""

    times: Sequence[int]
    series: dict[ContainerOfPod, PodSeries] = field(default_factory=dict)
    totals: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self.totals = [0.0] * len(self.times)

    def has(self, name: ContainerOfPod, place: int) -> bool:
        """Return whether a container has a sample at a place among the times."""
        return name in self.series and self.series[name].has(place)

    def put(self, name: ContainerOfPod, first: int, cpu: "array[float]", memory: "array[float]") -> None:
        """Take in samples of one container at consecutive times, as `PodSeries.put`."""
        series = self.series.get(name)
        if series is None:
            series = self.series[name] = PodSeries(self.times)
        before = len(series)
        series.put(first, cpu, memory)
        used = cpu if len(series) - before == len(cpu) else [0.0 if each == MISSING else each for each in cpu]
        self.totals[first : first + len(cpu)] = map(add, self.totals[first : first + len(cpu)], used)

    def __len__(self) -> int:
        return sum(map(len, self.series.values()))


def millicores(cores: float) -> int:
    """Return cores in whole millicores."""
    return int(cores * _MILLI + 0.5)


def spans_of(times: Sequence[int], days: Mapping[int, date | None]) -> list[PeakSpan]:
    """Return the parts of the peak windows; of each time it is said for which day it counts, None for no day."""
    found = []
    for day, group in groupby(times, days.__getitem__):
        if day is not None:
            these = list(group)
            found.append(PeakSpan(these[0], these[-1], day))
    return found


_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_ALL_DAYS = frozenset(range(len(_DAYS)))
#: An hour is a peak if its total is in the upper fifth between the lowest and the highest hour.
_UPPER = 0.8
_BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Windows:
    """Parts of the day, on some days of the week."""

    spans: tuple[tuple[time, time], ...]  # begin and end, which does not count, and is on the next day if not later
    days: frozenset[int] = _ALL_DAYS  # Monday is 0

    def day_of(self, local: datetime) -> date | None:
        """Return the day for which a local time counts; None if it does not count."""
        now, today = local.time(), local.date()
        for begin, end in self.spans:
            over_midnight = end <= begin
            day = today - timedelta(days=over_midnight and now < end)
            if day.weekday() in self.days and (begin <= now < end or (over_midnight and (now >= begin or now < end))):
                return day
        return None


def parse_windows(text: str, days: str) -> Windows:
    """Return the windows of `10:00-11:00,13:00-15:00` and `mon-fri`; raises UsageError that names a wrong part."""
    return Windows(tuple(_span(part.strip()) for part in text.split(",")), parse_days(days))


def _span(text: str) -> tuple[time, time]:
    begin, _, end = text.partition("-")
    try:
        return _time(begin), _time(end)
    except ValueError:
        raise UsageError(f"--peak: {text!r} is not a window; write it like 10:00-11:00") from None


def _time(text: str) -> time:
    return time() if text.strip() == "24:00" else datetime.strptime(text.strip(), "%H:%M").time()  # noqa: DTZ007


def parse_days(text: str) -> frozenset[int]:
    """Return the days of `mon-fri,sun`; `fri-mon` goes over the week's end.  Raises UsageError if a part is none."""
    found: set[int] = set()
    for part in text.lower().split(","):
        first, _, last = part.strip().partition("-")
        if first not in _DAYS or (last and last not in _DAYS):
            raise UsageError(f"--days: {part.strip()!r} is not a day or a range of days; write it like mon-fri")
        begin = _DAYS.index(first)
        length = (_DAYS.index(last or first) - begin) % len(_DAYS)
        found.update((begin + offset) % len(_DAYS) for offset in range(length + 1))
    return frozenset(found)


def hourly_totals(totals: Iterable[tuple[datetime, float]]) -> dict[int, float]:
    """Return what is used in all in each hour of the day, as the median of its moments: single bursts make no peak."""
    by_hour: dict[int, list[float]] = {}
    for local, total in totals:
        by_hour.setdefault(local.hour, []).append(total)
    return {hour: median(values) for hour, values in sorted(by_hour.items())}


def found_peaks(by_hour: Mapping[int, float], days: frozenset[int]) -> Windows:
    """Return the hours in which most is used; all hours if they differ by nothing."""
    lowest, highest = min(by_hour.values()), max(by_hour.values())
    bar = lowest + _UPPER * (highest - lowest)
    return Windows(tuple((time(h), time((h + 1) % 24)) for h, total in by_hour.items() if total >= bar), days)


def day_picture(by_hour: Mapping[int, float]) -> str:
    """Return the 24 hours as bars, a dot where nothing is known: `··▁▂▅█▅▁`."""
    highest = max(by_hour.values()) or 1.0
    return "".join(
        _BARS[round(by_hour[hour] / highest * (len(_BARS) - 1))] if hour in by_hour else "·" for hour in range(24)
    )
