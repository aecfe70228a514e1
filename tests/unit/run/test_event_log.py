"""Events of a run: how long the last ones are waited for."""

import threading

import pytest

from rebalancer.engine.ledger import Entry
from rebalancer.eviction.causes import as_cause
from rebalancer.eviction.verdict import GRANTED
from rebalancer.kube.tries import Halt
from rebalancer.run.live import EventLog
from tests import make


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


@pytest.mark.parametrize(
    ("reason", "seconds", "said"),
    [
        ("told to stop", 2.9, ""),
        ("told to stop", 5.1, "1 Events were not delivered: there was no time left"),
        ("", 24.9, ""),
        ("", 25.1, "1 Events were not delivered: there was no time left"),
    ],
)
def test_the_last_events_are_waited_for(cluster, server, reason, seconds, said):
    """Up to 3 s from when the run is told to end, and up to 25 s where it ends by itself."""
    clock, begun, over = Leap(seconds), threading.Event(), threading.Event()

    def answer(_):
        begun.set()
        (over if said else clock.done).wait(120)

    def permit():
        clock.told = True
        return reason

    server.on("POST", "/apis/events.k8s.io/v1/namespaces/*/events", answer)
    events = EventLog(cluster, Halt(permit=permit), failures=False, clock=clock)
    events.observe(Entry("default", "PodLifeTime", make.pod("a"), as_cause("too old"), GRANTED))
    assert begun.wait(120)

    assert events.close() == said
    assert clock.done.is_set()
    over.set()
