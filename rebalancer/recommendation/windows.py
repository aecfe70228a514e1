"""The hours that count: those that a person names, or those in which most is used.

Example: with `10:00-11:00,13:00-15:00` and `mon-fri`, a sample of Tuesday 13:20 counts for Tuesday, and one of 15:00
does not count.  A window over midnight (`22:00-02:00`) belongs to the day on which it begins.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from statistics import median

from rebalancer.errors import UsageError

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_ALL_DAYS = frozenset(range(len(_DAYS)))
#: An hour is a peak if its total is in the upper fifth between the lowest and the highest hour.
_UPPER = 0.8
_BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Windows:
    """Parts of the day, on some days of the week.

    Attributes:
        spans: begin and end; the end does not count, and an end that is not later is on the next day.
        days: Monday is 0.
    """

    spans: tuple[tuple[time, time], ...]
    days: frozenset[int] = _ALL_DAYS

    def day_of(self, local: datetime) -> date | None:
        """Return the day for which a local time counts; None if it does not count."""
        now, today = local.time(), local.date()
        for begin, end in self.spans:
            if begin < end:
                day = today if begin <= now < end else None
            elif now >= begin:
                day = today
            else:
                day = today - timedelta(days=1) if now < end else None
            if day is not None and day.weekday() in self.days:
                return day
        return None


def parse_windows(text: str, days: str) -> Windows:
    """Return the windows of `10:00-11:00,13:00-15:00` and `mon-fri`.

    Raises:
        UsageError: one of them cannot be read; the message says which part.
    """
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
    """Return the days of `mon-fri,sun`; `fri-mon` goes over the end of the week.

    Raises:
        UsageError: a part is not a day.
    """
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
    """Return what is used in all in each hour of the day, as the median of its moments: single bursts make no peak.

    Args:
        totals: local times, and what all containers together used then.
    """
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
