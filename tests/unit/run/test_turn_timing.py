"""The durations of Leases are those that the guide promises."""

import re
from functools import partial
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pytest

from rebalancer.run import leadership
from rebalancer.run.leadership import Timing
from rebalancer.run.options import LeaseOptions

GUIDE = Path(__file__).parents[3] / "docs/running.md"
FLAGS = ("lease-duration", "renew-deadline", "retry-period")


def promised(column):
    rows = [re.search(rf"`--leader-elect-{flag}` \| (\d+) s \| (\d+) s", GUIDE.read_text()) for flag in FLAGS]
    return Timing(*(float(row.group(column)) for row in rows))


CLIENT = SimpleNamespace(ending=Event())
candidate = partial(leadership.candidate, CLIENT)


def test_a_cycle_and_a_leader_have_the_durations_of_the_guide(monkeypatch):
    """A CronJob's next run need not wait long for one that was killed; a leader's are the descheduler's."""
    monkeypatch.setattr(leadership, "Leases", lambda *_: None)
    assert candidate(LeaseOptions(), leadership.ONE_CYCLE).timing == promised(1)
    assert candidate(LeaseOptions(), leadership.LEADER).timing == promised(2)
    assert candidate(LeaseOptions(retry_period=3.0), leadership.ONE_CYCLE).timing == Timing(137.0, 107.0, 3.0)


@pytest.mark.parametrize(("deadline", "seconds"), [(107.0, 5.0), (10.0, 5.0), (8.0, 4.0)])
def test_a_request_leaves_time_for_another_try_before_the_deadline(monkeypatch, deadline, seconds):
    """And takes no longer than a run waits that takes a Lease which was not given back."""
    asked = []
    monkeypatch.setattr(leadership, "Leases", lambda *given: asked.append(given))

    candidate(LeaseOptions(lease_duration=200.0, renew_deadline=deadline, retry_period=2.0), leadership.ONE_CYCLE)

    assert asked == [(CLIENT, "kube-system", "rebalancer", seconds)]
