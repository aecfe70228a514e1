"""An eviction whose answer says nothing certain: what settles the doubt, and what does not."""

from dataclasses import replace
from datetime import UTC, datetime
from unittest.mock import ANY

import pytest

from rebalancer.errors import NoCredentials
from rebalancer.eviction.verdict import GRANTED, Granted, Unknown
from rebalancer.kube.client import Client
from rebalancer.kube.config import Connection
from rebalancer.kube.evictions import LOOK_SECONDS, Evictions, PodEviction
from rebalancer.kube.tries import Halt
from tests.fake_http import Reply

EVICTION, POD = "*/eviction", "*/pods/a"
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)

#: Nested deeper than anybody reads.
DEEP = b'{"kind": "Status", "status": "Success", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"

#: What a retry may say, and what of it would be believed without an earlier doubt.
DEFINITE = {
    "400": {"status": 400},
    "403": {"status": 403},
    "422": {"status": 422},
    "a webhook": {"status": 400, "message": 'admission webhook "w" denied the request: no'},
    "two PDBs": {"status": 500, "message": "This pod has more than one PodDisruptionBudget"},
    "a PDB": {"status": 429, "body": {"kind": "Status", "details": {"causes": [{"reason": "DisruptionBudget"}]}}},
    "a redirect": {"status": 301},
}


def methods(server):
    return [request.method for request in server.requests]


@pytest.mark.parametrize("status", [0, 500, 502, 503, 504, 599])
@pytest.mark.parametrize("processed", [True, False])
def test_a_pod_that_is_gone_after_a_doubt_was_evicted(evict, server, status, processed):
    """An API server answers 500 or 503 after a write that went through, when etcd is slow; else it is sent again."""

    def lose(request):
        if processed:
            server.process(request)
        return Reply(status, {"kind": "Status", "message": "etcdserver: request timed out"}, lost=not status)

    server.on("POST", EVICTION, lose, times=1)

    assert evict() == GRANTED
    assert methods(server) == (["POST", "GET"] if processed else ["POST", "GET", "POST"])
    first, *again = server.sent("POST", EVICTION)
    assert [each.body for each in again] == ([] if processed else [first.body])
    assert server.evicted == ["default/a"]


@pytest.mark.parametrize("goes", [False, True], ids=["stays", "goes later"])
@pytest.mark.parametrize("answer", DEFINITE.values(), ids=DEFINITE)
def test_a_doubt_outlasts_what_the_retry_says(evict, server, answer, goes):
    """The second request is refused; the first one may still be on its way, and the pod goes after that."""
    server.reset("POST", EVICTION)
    server.fail("POST", EVICTION, **answer)
    late = {"times": float(goes), "when": lambda _: len(server.requests) > 3}
    server.on("GET", POD, lambda _: server.remove_pod("default", "a"), **late)

    verdict = evict()

    assert verdict == (GRANTED if goes else Unknown(ANY))
    assert goes or verdict.error.endswith("; the pod may have been evicted all the same")
    assert methods(server).count("POST") == 2


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ({"status": 404, "body": {"kind": "Status", "details": {"kind": "pods"}}}, GRANTED),
        ({"status": 409, "message": "the UID in the precondition (1) does not match"}, GRANTED),
        (
            {"status": 403, "body": {"kind": "Status", "details": {"causes": [{"reason": "NamespaceTerminating"}]}}},
            GRANTED,
        ),
        ({"status": 429, "message": "Eviction triggered evacuation"}, Granted(background=True)),
    ],
    ids=["404", "another UID", "its namespace goes", "taken over"],
)
def test_a_retry_that_finds_the_pod_gone_settles_the_doubt(evict, server, answer, verdict):
    """Even without the permission to look at pods."""
    server.reset("POST", EVICTION)
    server.fail("POST", EVICTION, **answer)
    server.forbid("get", "pods")

    assert evict() == verdict


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, "<html>"),
        (200, "{}"),
        (200, {"kind": "Pod", "metadata": {}}),
        (200, {"kind": "Pod", "metadata": {"uid": ""}}),
        (200, {"kind": "Status"}),
        (200, {"kind": "Lease", "metadata": {"uid": "another"}}),
        (200, {"metadata": {"uid": "another"}}),
        (200, b'{"kind": "Pod", "metadata": {"uid": "\xff"}}'),
        (200, DEEP),
        (404, "404 page not found"),
        (403, "no permission to look"),
    ],
)
def test_a_look_at_something_else_settles_nothing(evict, server, status, body):
    """A page of a proxy's is not the pod."""
    server.fail("POST", EVICTION, status=500)
    server.fail("GET", POD, status=status, body=body)

    assert isinstance(evict(), Unknown)


@pytest.mark.parametrize("status", [200, 201, 204, 301, 302])
@pytest.mark.parametrize(
    "body",
    [
        "<html>Log in</html>",
        {},
        {"kind": "Status", "status": "Failure"},
        {"status": "Success"},
        {"kind": "Login", "status": "Success"},
        b'{"kind": "Status", "status": "\xff"}',
        DEEP,
    ],
)
def test_an_answer_that_is_not_about_the_eviction_is_a_doubt(evict, server, status, body):
    """It is not asked for again: whoever answers so will go on answering so."""
    server.fail("POST", EVICTION, status=status, body="" if status == 204 else body)

    assert isinstance(evict(), Unknown)
    assert methods(server).count("POST") == 1


def test_the_last_look_is_tried_more_than_once(evict, server, time):
    """A server that has just come back may end the eviction a moment later."""
    server.fail("POST", EVICTION, status=500)
    server.on("GET", POD, lambda _: server.remove_pod("default", "a"), when=lambda _: time.now >= 1025)

    assert evict() == GRANTED


def test_a_doubt_outlasts_a_busy_server(evict, server):
    """It has done nothing, but that is about the latest request."""
    server.reset("POST", EVICTION)
    server.fail("POST", EVICTION, status=429)

    assert isinstance(evict(), Unknown)


def test_credentials_that_end_while_an_answer_is_lost_leave_the_doubt(evict, connection, server, time):
    """Without new ones nothing can be looked at: the pod may have gone, so it is not said to have stayed."""
    good = connection.access()
    loads = iter([good, replace(good, expires=LONG_AGO)])

    def load(_seconds):
        if access := next(loads, None):
            return access
        raise NoCredentials("log in again")

    def lose(_):
        ends.reload(ends.access())
        return Reply(0, None, lost=True)

    ends = Connection(load, context="fake")
    server.on("POST", EVICTION, lose)

    verdict = evict(by=Evictions(Client(ends, retry_policy=time.retry_policy()), time.retry_policy(), Halt()))

    assert isinstance(verdict, Unknown)


@pytest.fixture
def look(client, time):
    """Look at pod a, which the server does not have."""
    return lambda **settings: PodEviction(
        client, "/api/v1/namespaces/default/pods/a", "uid-of-a", time.retry_policy(**settings)
    )


@pytest.mark.parametrize(("seconds", "believed"), [(4.9, True), (5.1, False)])
def test_an_answer_that_takes_more_than_five_seconds_is_not_read(look, server, time, seconds, believed):
    """Looks go on after the deadline or a signal, so each of them has a bound."""
    server.on("GET", POD, lambda _: time.sleep(seconds))

    assert look().is_gone() == believed


@pytest.mark.parametrize(("wait", "looks"), [(4.9, 2), (5.1, 1)])
def test_the_last_looks_take_five_seconds_together(look, server, pod, wait, looks):
    """However long the policy for evictions goes on: none begins later than that."""
    server.add(pod("a"))

    assert not look(seconds=3600, first_wait=wait).is_gone(LOOK_SECONDS)
    assert len(server.requests) == looks


def test_the_last_looks_go_on_where_the_server_has_trouble(look, server):
    """An API server that restarts says 503 at first."""
    server.fail("GET", POD, status=503, times=1)

    assert look(first_wait=1.0).is_gone(LOOK_SECONDS)
