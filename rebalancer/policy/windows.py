"""When pods may be moved: the keys `windows` and `freeze` of a policy and of a profile, and our annotations.

A window opens by a cron expression in its time zone, and lasts so long: `{cron: "0 22 * * *", for: 6h}`.  Without any
window it is always open; with several, one that is open is enough.  A freeze closes all of them.  Times follow the
zone's clock: at the change to summer time a window at 02:30 opens at 03:00, and its six hours are six real hours.
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from typing import Annotated, Any, Self
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, Field, ValidationError, model_validator

from rebalancer.policy.arguments import Duration, Part

_LONGEST_TEXT = 400
#: A window may open once in four years (on 29 February); whether one is open is looked for no further back.
_LONGEST = timedelta(days=31)
_LONGEST_CHANGE = timedelta(hours=3)  # by which a clock is set back
_MOST_MOMENTS = 400  # there are 180 minutes in the longest change, and more is not worth a look


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:  # none of that name, or a name that leads out of the folder
        raise ValueError(f"{name!r} is not a time zone, like UTC or Asia/Shanghai") from error
    return name


Zone = Annotated[str, AfterValidator(_zone)]


def time_with_offset(text: str) -> datetime | None:
    """Return a time like 2026-12-20T18:00:00Z in UTC; None for any other text, also for a time without its offset."""
    with suppress(ValueError, OverflowError):  # a time at the end of the year 9999 may not exist in UTC
        if (moment := datetime.fromisoformat(text)).tzinfo:
            return moment.astimezone(UTC)
    return None


class Window(Part):
    """A time in which pods may be moved, again and again."""

    cron: str = Field(description="When it opens: minute, hour, day, month, weekday, like `0 22 * * *`.")
    for_: Duration = Field(alias="for", description="How long it stays open, like 6h.")
    timezone: Zone = Field("UTC", description="The time zone of cron.")

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if not timedelta(minutes=1) <= self.for_ <= _LONGEST:
            raise ValueError("a window is open for 1m to 744h")
        if len(self.cron.split()) != 5:  # noqa: PLR2004  seconds, which cronsim would take, are not cron
            raise ValueError(f"{self.cron[:40]!r} is not a cron expression of five fields, like 0 22 * * *")
        try:
            next(CronSim(self.cron, datetime(2026, 1, 1, tzinfo=UTC)))
        except (CronSimError, StopIteration) as error:
            raise ValueError(f"{self.cron[:40]!r} is not a cron expression that ever comes: {error}") from error
        return self

    def is_open(self, now: datetime) -> bool:
        """Return whether it is open."""
        opened = self._step(now.replace(microsecond=0) + timedelta(seconds=1), reverse=True)
        return opened is not None and opened <= now < opened + self.for_

    def next_opening(self, now: datetime) -> datetime | None:
        """Return when it opens next."""
        return self._step(now, reverse=False)

    def _step(self, now: datetime, *, reverse: bool) -> datetime | None:
        zone = ZoneInfo(self.timezone)
        # CronSim takes the second of two equal hours for the first.  So begin after both, and skip what is too late.
        start = now + _LONGEST_CHANGE if reverse and now.astimezone(zone).fold else now
        try:
            moments = (each.astimezone(UTC) for each in CronSim(self.cron, start.astimezone(zone), reverse=reverse))
            # Pacific/Chatham changes at 45 minutes past: CronSim may repeat one moment for ever.  Then none is open.
            return next(each for each in islice(moments, _MOST_MOMENTS) if (each < now if reverse else each > now))
        except (StopIteration, OverflowError):
            return None


class Freeze(Part):
    """A time in which nothing is moved."""

    from_: str = Field(alias="from", description="The first day, like 2026-12-20, or a time with its offset.")
    to: str = Field(description="The last day, or a time with its offset.")
    timezone: Zone = Field("UTC", description="The time zone of days.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.begins >= self.ends:
            raise ValueError(f"a freeze ends after it begins, and not from {self.from_} to {self.to}")
        return self

    @property
    def begins(self) -> datetime:
        """Its first moment."""
        return self._moment(self.from_, timedelta())

    @property
    def ends(self) -> datetime:
        """The first moment after it: the last day is part of it."""
        return self._moment(self.to, timedelta(days=1))

    def is_on(self, now: datetime) -> bool:
        """Return whether nothing may be moved."""
        return self.begins <= now < self.ends

    def _moment(self, text: str, after: timedelta) -> datetime:
        with suppress(ValueError, OverflowError):
            day = date.fromisoformat(text)
            return datetime.combine(day + after, time(), ZoneInfo(self.timezone)).astimezone(UTC)
        moment = time_with_offset(text)
        if moment is None:
            raise ValueError(f"{text[:40]!r} is neither a day like 2026-12-20 nor a time like 2026-12-20T18:00:00Z")
        return moment


@dataclass(frozen=True, slots=True)
class Schedule:
    """The windows and freezes of a policy, a profile, or an annotation."""

    windows: tuple[Window, ...] = ()
    freezes: tuple[Freeze, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.windows or self.freezes)

    def closed(self, now: datetime) -> str:
        """Return why nothing may be moved now, and when the next window opens; empty if something may."""
        thawed = self._thawed(now)
        if thawed > now:
            return f"a freeze lasts until {_shown(thawed)}{self._opening(thawed)}"
        return "" if self._in_window(now) else f"outside the windows{self._opening(now)}"

    def _in_window(self, now: datetime) -> bool:
        return not self.windows or any(each.is_open(now) for each in self.windows)

    def _thawed(self, now: datetime) -> datetime:
        """Return the first moment from now on without a freeze: one may begin where another ends."""
        while ends := [each.ends for each in self.freezes if each.is_on(now)]:
            now = max(ends)
        return now

    def _opening(self, now: datetime) -> str:
        moment = now
        while not self._in_window(moment):
            times = [opening for each in self.windows if (opening := each.next_opening(moment))]
            if not times:
                return ""
            moment = self._thawed(min(times))  # a freeze may end while a window is open
        return f"; the next one opens at {_shown(moment)}" if moment > now else ""


ALWAYS = Schedule()  # always open


def _shown(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def closed_by_note(text: str, now: datetime) -> str:
    """Return why the annotation `kube-rebalancer/window` (JSON, or `CRON; FOR; TIMEZONE`) keeps pods; empty if not."""
    if not text:
        return ""
    try:
        return Schedule(tuple(_noted(text))).closed(now)
    except (ValidationError, ValueError, RecursionError):
        return "its annotation kube-rebalancer/window cannot be read"


def _noted(text: str) -> Iterable[Window]:
    if len(text) > _LONGEST_TEXT:
        raise ValueError("too long")
    if text.lstrip()[:1] in "[{":
        document = json.loads(text)
        return [Window.model_validate(each) for each in (document if isinstance(document, list) else [document])]
    given = dict(zip(("cron", "for", "timezone"), map(str.strip, text.split(";")), strict=False))
    if text.count(";") >= len(given):
        raise ValueError("more than a cron expression, a duration and a time zone")
    return [Window.model_validate(given)]


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause that somebody has asked for: until when (None: until it is ended), and why."""

    until: datetime | None
    reason: str

    def text(self) -> str:
        """Return it as an annotation has it."""
        until = {"until": _shown(self.until.astimezone(UTC))} if self.until else {}
        return json.dumps({**until, "reason": self.reason})


def pause_in(text: str, now: datetime) -> Pause | None:
    """Return the pause that an annotation asks for, if one is in force; a text that cannot be read is one."""
    if not text:
        return None
    try:
        document: Any = json.loads(text)
        until = datetime.fromisoformat(document["until"]) if "until" in document else None
        reason = str(document.get("reason", ""))[:_LONGEST_TEXT]
        if until is not None:
            until = until.replace(tzinfo=until.tzinfo or UTC).astimezone(UTC)
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return Pause(None, "its text cannot be read")
    return None if until is not None and until <= now else Pause(until, reason)


def paused_in_words(pause: Pause, what: str) -> str:
    """Return why nothing is moved."""
    until = f" until {_shown(pause.until.astimezone(UTC))}" if pause.until else ""
    return f"{what} is paused{until}{f': {pause.reason}' if pause.reason else ''}"
