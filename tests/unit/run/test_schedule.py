"""When cycles start, and by which settings."""

import itertools
import sys
from io import BytesIO, TextIOWrapper

from rebalancer.run.loop import MOST_INTERVALS, Ticks, Watched
from rebalancer.run.policies import policy_text


def exact(interval=300.0, start=0.0):
    return Ticks(interval, start, jitter=lambda low, _high: low)


def test_a_cycle_that_overruns_skips_ticks_and_says_how_many():
    """Else cycles start an interval apart however long they take."""
    schedule = exact()

    found = [schedule.after(end, 0) for end in (1.0, 599.0, 610.0, 1700.0, 1801.0)]
    assert found == [(300.0, 0), (600.0, 0), (900.0, 0), (1800.0, 2), (2100.0, 0)]


def test_pauses_double_after_failures_up_to_ten_intervals_and_a_good_cycle_ends_that():
    schedule = exact(interval=1.0)
    now, pauses = 0.0, []
    for failures in (1, 2, 3, 4, 5, 10_000, 0):
        start, _ = schedule.after(now, failures)
        pauses.append(start - now)
        now = start

    assert pauses == [2.0, 4.0, 8.0, 10.0, 10.0, 10.0, 1.0]
    assert schedule.pause(10_000) == MOST_INTERVALS


def test_jitter_does_not_add_up():
    schedule = Ticks(100.0, 0.0, jitter=lambda _low, high: high)

    starts = list(itertools.accumulate(range(5), lambda now, _: schedule.after(now, 0)[0], initial=0.0))[1:]

    assert starts == [110.0, 210.0, 310.0, 410.0, 510.0]


def test_standard_input_stays_in_force(monkeypatch):
    """It can be read only once: the policy that came from it stays, and has not become empty."""
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"kind: DeschedulerPolicy")))
    told = []

    watched = Watched("policy", "-", policy_text, str, lambda *problem: told.append(problem))
    watched.refresh()

    assert (watched.value, told) == ("kind: DeschedulerPolicy", [("policy", "")])
