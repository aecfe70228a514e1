"""Events of a run: how long the last ones are waited for."""

import threading

import pytest

from rebalancer.engine.ledger import Entry
from rebalancer.eviction.causes import as_cause
from rebalancer.eviction.verdict import GRANTED
from rebalancer.kube.tries import Halt
from rebalancer.run.live import EventLog
from tests import make

EVENTS = "/apis/events.k8s.io/v1/namespaces/*/events"


class Leap:
    """A clock that stands still, but for one leap: after it was read once more from when it was told to."""

    def __init__(self, seconds):
        self.now = 1000.0
        self.seconds = seconds
        self.told = False
        self.done = threading.Event()

    def __call__(self):
        now = self.now
        if self.told and not self.done.is_set():
            self.now += self.seconds
            self.done.set()
        return now


@pytest.fixture
def begun(server):
    event = threading.Event()
    server.on("POST", EVENTS, lambda _: event.set())
    return event


def closed(cluster, begun, clock, reason):
    """Return what is said at the end about one Event, whose request has begun; `reason` is why the run ends."""

    def permit():
        clock.told = True
        return reason

    events = EventLog(cluster, Halt(permit=permit), failures=False, clock=clock)
    events.observe(Entry("default", "PodLifeTime", make.pod("a"), as_cause("too old"), GRANTED))
    assert begun.wait(120)
    return events.close()


@pytest.mark.parametrize(("reason", "seconds"), [("told to stop", 2.9), ("", 24.9)])
def test_the_last_events_are_waited_for(cluster, server, begun, reason, seconds):
    """Up to 3 s from when the run is told to end, and up to 25 s where it ends by itself."""
    clock = Leap(seconds)
    server.on("POST", EVENTS, lambda _: clock.done.wait(120))

    assert closed(cluster, begun, clock, reason) == ""
    assert clock.done.is_set()
    assert len(server.events) == 1


@pytest.mark.parametrize(("reason", "seconds"), [("told to stop", 5.1), ("", 25.1)])
def test_nothing_is_waited_for_any_longer(cluster, server, begun, reason, seconds):
    server.stall("POST", EVENTS, times=None)

    said = closed(cluster, begun, Leap(seconds), reason)

    assert said == "1 Events were not delivered: there was no time left"
