import threading
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from rebalancer.kube.client import Client
from rebalancer.kube.config import Connection
from rebalancer.kube.events import Event, Events, body_of, note_of, reporting_instance
from rebalancer.kube.tries import RetryPolicy

EVENTS = "/apis/events.k8s.io/v1/namespaces/*/events"
WHAT = {"type_": "Normal", "reason": "PodLifeTime", "note": "it went"}


@pytest.fixture
def events(client, time):
    publisher = Events(client, "kube-rebalancer-host", retry_policy=time.retry_policy(seconds=5))
    yield publisher
    publisher.close(120)


def publish(events, *names):
    for name in names or ("cart-1",):
        events.publish(Event("shop", name, "uid-1", **WHAT))


def begin_and_stall(server, publisher):
    """Publish two Events while the server keeps its answer to the first back, until the returned event is set."""
    begun = threading.Event()
    server.on("POST", EVENTS, lambda _: begun.set())
    release = server.stall("POST", EVENTS, times=1)
    publish(publisher, "a", "b")
    assert begun.wait(120)  # a request that begins while closing may give up first, and says so in its own words
    return release


def test_an_event_has_the_documented_fields(events, server):
    """What others match on is spelled as the descheduler spells it; its time and its name are of one moment."""
    events.publish(Event("shop", "cart-1", "uid-1", **WHAT, time=1_700_000_000_003_456_789))

    assert events.close(120) == 0
    assert server.requests[0].path == "/apis/events.k8s.io/v1/namespaces/shop/events"
    assert server.events == [
        {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"cart-1.{1_700_000_000_003_456_789:x}", "namespace": "shop"},
            "eventTime": "2023-11-14T22:13:20.003456Z",
            "reportingController": "kube-rebalancer",
            "reportingInstance": "kube-rebalancer-host",
            "action": "Descheduled",
            "reason": "PodLifeTime",
            "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "cart-1", "uid": "uid-1"},
            "note": "it went",
            "type": "Normal",
        }
    ]


def test_what_is_too_long_is_cut_to_the_limits_of_the_api():
    """A note has 1024 bytes, whatever its letters; a longer one would be refused as a whole."""
    event = body_of(Event("shop", "p" * 253, "uid", "Normal", "r" * 200, "ü" * 600), reporting_instance("i" * 300))

    assert event["reportingInstance"].startswith("kube-rebalancer-iii")  # replicas are told apart by their hosts
    assert event["note"] == "ü" * 510 + "…"
    assert (len(event["reason"]), len(event["reportingInstance"]), len(event["metadata"]["name"])) == (128, 128, 253)


@pytest.mark.parametrize(
    ("said", "rest"),
    [
        (("older than 1 day",), ": older than 1 day"),
        (("",), ""),
        (("older than 1 day", "node limit exceeded (2)"), " failed: node limit exceeded (2)"),
    ],
)
def test_notes_begin_with_the_words_of_the_descheduler(said, rest):
    """Others match on them; our reason follows, or the cause of the failure."""
    assert note_of("n1", *said) == f"pod eviction from n1 node by sigs.k8s.io/descheduler{rest}"


def test_nothing_is_sent_and_no_credentials_are_loaded_once_the_time_is_up(connection, server):
    """The thread ends with the request in flight; a plugin would be begun while the program ends, and left behind."""
    loads = []

    def load(seconds):
        loads.append(seconds)
        return replace(connection.access(), expires=datetime(2020, 1, 1, tzinfo=UTC))

    events = Events(Client(Connection(load, context="fake")), "host")
    assert events._worker.daemon  # one that hangs does not keep the program alive
    release = begin_and_stall(server, events)
    events.close(0.05)
    before = len(loads)
    release.set()
    events._worker.join(120)

    assert not events._worker.is_alive()
    assert (len(server.requests), len(loads)) == (1, before)


def test_an_event_is_tried_again(events, server, time):
    """A hiccup loses nothing, and what was stored before its answer was lost is not stored twice."""
    server.fail("POST", EVENTS, status=503, times=1)
    server.reset("POST", EVENTS, processed=True)
    server.fail("POST", EVENTS, status=409, times=1)
    publish(events)

    assert events.close(120) == 0
    assert len(server.events) == 1
    assert time.waits == [0.5, 1]


def test_the_shorter_time_counts_from_the_first_moment_of_a_hurry(client, server, time):
    release = server.stall("POST", EVENTS, times=None)
    events = Events(client, "host", clock=time.clock)
    publish(events)
    moments = []

    def hurried():
        moments.append(time.now)
        assert len(moments) < 10
        time.now += 2.0
        return True

    assert events.close(3600, hurried, 5.0) == 1
    assert moments == [1000.0, 1002.0, 1004.0, 1006.0]
    release.set()


def test_without_a_hurry_there_is_the_longer_time(events, server):
    """The shorter one is for the end of a run that was told to end; what fails meanwhile is said in its own words."""
    release = server.stall("POST", EVENTS, times=None)
    server.fail("POST", EVENTS, status=403)
    publish(events)
    asked = iter([False, False])

    assert events.close(120, lambda: next(asked, None) is None and release.set(), 0.0) == 1
    assert events.problem == "no permission to create events.events.k8s.io: it is broken"


def test_an_event_is_tried_again_for_five_seconds_at_most(client, server):
    """A server that asks for as much as that gets no second request: other Events wait behind this one."""
    server.fail("POST", EVENTS, status=503, headers={"Retry-After": "5"})
    events = Events(client, "host")
    publish(events)

    assert events.close(120) == 1
    assert len(server.requests) == 1


def test_closing_ends_the_wait_for_another_try(client, server):
    """A server that asks for an hour keeps no thread alive for that long."""
    asked = threading.Event()
    server.on("POST", EVENTS, lambda _: asked.set())
    server.fail("POST", EVENTS, status=503, headers={"Retry-After": "3600"})
    events = Events(client, "host", retry_policy=RetryPolicy(seconds=7200))
    publish(events)
    assert asked.wait(120)

    assert events.close(0) == 1
    events._worker.join(120)
    assert not events._worker.is_alive()


def test_what_could_not_be_delivered_is_said_before_closing_too(events, server):
    """Closing lasts for seconds only; an Event may fail long before."""
    asked = threading.Semaphore(0)
    server.on("POST", EVENTS, lambda _: asked.release())
    server.fail("POST", EVENTS, status=403)
    publish(events, "a", "b")
    for _ in range(2):  # the second is asked for when the first has failed
        assert asked.acquire(timeout=120)

    assert events.problem == "no permission to create events.events.k8s.io: it is broken"
    assert events.close(120) == 2
