"""When pods may be moved: windows, freezes, pauses."""

import json
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rebalancer.policy.windows import Freeze, Pause, Schedule, Window, closed_by_note, pause_in, paused_in_words

NIGHT = {"cron": "0 22 * * *", "for": "6h", "timezone": "Asia/Shanghai"}
TWICE = {"cron": "30 2 * * *", "for": "2h", "timezone": "Europe/Berlin"}
TIMES = st.integers(0, 3 * 366 * 86_400 * 10).map(
    lambda n: datetime(2025, 1, 1, tzinfo=UTC) + timedelta(seconds=n / 10)
)


def at(text):
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("window", "when", "is_open"),
    [
        (NIGHT, "2026-05-01T13:59:59Z", False),
        (NIGHT, "2026-05-01T14:00:00Z", True),
        (NIGHT, "2026-05-01T19:59:59Z", True),
        (NIGHT, "2026-05-01T20:00:00Z", False),
        # At the change to summer time 02:30 does not come, so it opens at 03:00; six hours are six hours.
        ({"cron": "30 2 * * *", "for": "6h", "timezone": "Europe/Berlin"}, "2026-03-29T00:59:59Z", False),
        ({"cron": "30 2 * * *", "for": "6h", "timezone": "Europe/Berlin"}, "2026-03-29T01:00:00Z", True),
        ({"cron": "30 2 * * *", "for": "6h", "timezone": "Europe/Berlin"}, "2026-03-29T06:59:59Z", True),
        # In the night back to winter time the clock shows 03:00 after six hours, and not 04:00.
        ({"cron": "0 22 * * *", "for": "6h", "timezone": "Europe/Berlin"}, "2026-10-25T01:59:59Z", True),
        ({"cron": "0 22 * * *", "for": "6h", "timezone": "Europe/Berlin"}, "2026-10-25T02:00:00Z", False),
        # There is an hour twice in that night: what opens in it opens in the first one, and stays open over the second.
        (TWICE, "2026-10-25T00:29:59Z", False),
        (TWICE, "2026-10-25T00:30:00Z", True),
        (TWICE, "2026-10-25T01:15:00Z", True),
        (TWICE, "2026-10-25T02:29:59Z", True),
        (TWICE, "2026-10-25T02:30:00Z", False),
        ({"cron": "0 0 * * 6", "for": "48h"}, "2026-11-22T23:59:59Z", True),
    ],
)
def test_a_window_is_open_for_its_time(window, when, is_open):
    """By the clock of its zone, over the changes of that clock too."""
    assert Window.model_validate(window).is_open(at(when)) == is_open


CRONS = st.builds("{} {} * * {}".format, st.integers(0, 59), st.integers(0, 23), st.sampled_from("*135"))
ZONES = st.sampled_from(("UTC", "Asia/Shanghai", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe"))


@given(CRONS, st.integers(1, 36), ZONES, TIMES)
def test_a_window_opens_when_it_says_that_it_will(cron, hours, zone, now):
    """Closed until the moment that is named, open from it on, whatever the zone's clock does."""
    schedule = Schedule((Window.model_validate({"cron": cron, "for": f"{hours}h", "timezone": zone}),))
    closed = schedule.closed(now)
    if closed:
        opening = at(closed.rpartition(" ")[2])
        assert opening > now
        assert not schedule.closed(opening)
        assert schedule.closed(opening - timedelta(seconds=1))


@pytest.mark.parametrize("freeze", [(), ({"from": "2026-10-24", "to": "2026-10-25T01:00:00Z"},)])
def test_a_window_in_an_hour_that_comes_twice_opens_on_the_next_day(freeze):
    """Also after a freeze that ends in the second of the two."""
    window, freezes = Window.model_validate(TWICE | {"for": "10m"}), tuple(map(Freeze.model_validate, freeze))

    assert Schedule((window,), freezes).closed(at("2026-10-25T01:00:00Z")).endswith("opens at 2026-10-26T01:30:00Z")
    assert Schedule((window,), freezes).closed(at("2026-10-25T00:59:59Z")).endswith("opens at 2026-10-26T01:30:00Z")


def test_a_clock_that_is_set_back_at_a_quarter_to_the_hour_ends_no_run():
    """There the library for cron may return one moment again and again."""
    window = Window.model_validate({"cron": "*/15 2 * * *", "for": "1h", "timezone": "Pacific/Chatham"})

    assert Schedule((window,)).closed(at("2026-04-04T13:15:00Z"))


@pytest.mark.parametrize(
    ("freezes", "now", "said"),
    [
        ([("01T22:00", "01T23:00")], "01T21:00", "outside the windows; the next one opens at 2026-05-01T23:00:00Z"),
        ([("01T20:00", "01T23:00")], "01T21:00", "a freeze lasts until 2026-05-01T23:00:00Z"),
        ([("01T20:00", "01T21:00"), ("01T21:00", "03T12:00")], "01T20:30", "a freeze lasts until 2026-05-03T12:00:00Z"),
    ],
)
def test_a_freeze_that_ends_within_a_window_or_another_freeze(freezes, now, said):
    """The window is open from 22:00 to 04:00: whoever waits comes at the right time."""
    night = Window.model_validate({"cron": "0 22 * * *", "for": "6h"})
    times = [[f"2026-05-{each}:00Z" for each in freeze] for freeze in freezes]
    frozen = tuple(Freeze.model_validate({"from": begin, "to": end}) for begin, end in times)

    assert Schedule((night,), frozen).closed(at(f"2026-05-{now}:00Z")).startswith(said)


@given(TIMES, st.integers(0, 400), st.integers(0, 30), ZONES)
def test_a_freeze_closes_every_window(now, begins, days, zone):
    """Its last day is part of it."""
    first = datetime(2026, 1, 1, tzinfo=UTC).date() + timedelta(days=begins)
    last = first + timedelta(days=days)
    freeze = Freeze.model_validate({"from": str(first), "to": str(last), "timezone": zone})
    always = Window.model_validate({"cron": "* * * * *", "for": "2m"})

    closed = Schedule((always,), (freeze,)).closed(now)

    assert bool(closed) == (first <= now.astimezone(ZoneInfo(zone)).date() <= last)


@pytest.mark.parametrize(
    ("kind", "given_"),
    [
        (Window, {"cron": "0 25 * * *", "for": "6h"}),
        (Window, {"cron": "0 0 30 2 *", "for": "6h"}),
        (Window, {"cron": "* * * * * *", "for": "6h"}),
        (Window, NIGHT | {"timezone": "Mars/Olympus"}),
        (Window, NIGHT | {"timezone": "../../etc/passwd"}),
        (Window, NIGHT | {"for": "0s"}),
        (Freeze, {"from": "2026-12-20", "to": "2026-12-19"}),
        (Freeze, {"from": "Christmas", "to": "2026-12-19"}),
        (Freeze, {"from": "2026-12-20T00:00:00", "to": "2026-12-21"}),
        (Freeze, {"from": "2026-12-20", "to": "9999-12-31T23:59:59-14:00"}),
    ],
)
def test_what_makes_no_sense_is_an_error(kind, given_):
    with pytest.raises(ValidationError):
        kind.model_validate(given_)


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        ("", True),
        ("0 22 * * *; 6h; Asia/Shanghai", True),
        ('{"cron": "0 22 * * *", "for": "6h", "timezone": "Asia/Shanghai"}', True),
        ('[{"cron": "0 3 * * *", "for": "1h"}, {"cron": "0 14 * * *", "for": "1h"}]', True),
        ("0 3 * * *; 1h", False),
        ("nonsense", False),
        ("[" * 300, False),
        ("0 22 * * *; 6h; Asia/Shanghai; more", False),
    ],
)
def test_an_annotation_says_the_same(text, is_open):
    """One that cannot be read keeps its pods."""
    assert (not closed_by_note(text, at("2026-05-01T14:30:00Z"))) == is_open


@given(st.text(max_size=60))
def test_a_pause_that_cannot_be_read_is_a_pause(text):
    found = pause_in(text, at("2026-05-01T14:30:00Z"))
    assert (found is None) == (not text) or '"until"' in text


@pytest.mark.parametrize("until", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "tomorrow"])
def test_a_pause_until_an_impossible_time_is_a_pause(until):
    """The annotation may be of any owner of pods: it must not end a run."""
    found = pause_in(json.dumps({"until": until}), at("2026-05-01T14:30:00Z"))

    assert paused_in_words(found, "web") == "web is paused: its text cannot be read"


def test_a_pause_ends_when_it_says():
    now = at("2026-05-01T14:30:00Z")
    text = Pause(now + timedelta(hours=2), "load test").text()

    assert pause_in(text, now + timedelta(minutes=119)) == Pause(now + timedelta(hours=2), "load test")
    assert pause_in(text, now + timedelta(hours=2)) is None
