import json
import threading
from dataclasses import dataclass, field, replace

import pytest

from rebalancer.cluster.pod import LONG_AGO
from rebalancer.errors import Unreachable
from rebalancer.kube import lists
from rebalancer.kube.answers import Expired, Rejected
from rebalancer.kube.client import Client
from rebalancer.kube.config import Connection
from rebalancer.kube.lists import read_list
from rebalancer.kube.tries import Deadline
from tests.fake_api_server import Reply

PODS = "/api/v1/pods"


@dataclass
class Names:
    """Folds the names in."""

    names: list[str] = field(default_factory=list)
    pages: int = 0

    def add_page(self, page: bytes) -> str:
        document = json.loads(page)
        self.names += [each["metadata"]["name"] for each in document["items"]]
        self.pages += 1
        return document["metadata"].get("continue", "")


@pytest.fixture
def three(server, pod):
    for name in "abc":
        server.add(pod(name))


def test_all_pages_are_folded_in_order(client, server, three):
    """Page by page, until there is no continue token; other query parameters go with each page."""
    collector = read_list(client, PODS, Names, page_size=1, query={"fieldSelector": "x=y"})

    assert (collector.names, collector.pages) == (["a", "b", "c"], 3)
    assert all("resourceVersion" not in each.query for each in server.requests)  # a state that is not stale
    assert [each.query["limit"] for each in server.requests] == ["1", "1", "1"]
    assert {each.query["fieldSelector"] for each in server.requests} == {"x=y"}
    assert ["continue" in each.query for each in server.requests] == [False, True, True]


def test_the_next_page_is_under_way_while_one_is_folded_in(client, server, three):
    """The first page is folded in once the server has been asked for the second."""
    asked = threading.Event()
    server.on("GET", PODS, lambda _: asked.set(), when=lambda request: "continue" in request.query)

    class Slow(Names):
        def add_page(self, page):
            assert asked.wait(30)
            return super().add_page(page)

    assert read_list(client, PODS, Slow, page_size=2).names == ["a", "b", "c"]


@pytest.mark.parametrize("status", [401, 429, 503])
def test_a_page_that_could_not_be_fetched_ahead_is_fetched_again(client, server, three, status):
    """Ahead there is one try; retries and fresh credentials are left to the reader of the list."""
    later = Reply(status, {"kind": "Status", "apiVersion": "v1", "code": status})
    server.on("GET", PODS, lambda _: later, times=1, when=lambda request: "continue" in request.query)

    assert read_list(client, PODS, Names, page_size=2).names == ["a", "b", "c"]
    assert ["continue" in each.query for each in server.requests] == [False, True, True]


def test_no_credentials_are_loaded_for_a_page_ahead(connection, server, three):
    """A plugin that another thread starts could outlive the program.  Here all credentials have expired already."""
    loaded = []

    def load(_seconds):
        loaded.append(threading.current_thread())
        return replace(connection.present, expires=LONG_AGO)

    expired = Client(Connection(load, context=None))

    assert read_list(expired, PODS, Names, page_size=1).names == ["a", "b", "c"]
    assert set(loaded) == {threading.current_thread()}


def test_the_same_page_again_and_again_ends_the_list(client, server, pod):
    """As from a proxy that leaves the query out; else the pods would be read until there is no memory left."""
    page = {"kind": "PodList", "metadata": {"continue": "more"}, "items": [pod("a")]}
    server.fail("GET", PODS, status=200, body=page, times=5)

    with pytest.raises(Rejected, match="the same page again and again"):
        read_list(client, PODS, Names)
    assert len(server.requests) == 2


@pytest.mark.parametrize(("times", "limits"), [(1, ["2", "2"]), (None, ["2", "2", "2", None])])
def test_an_expired_token_begins_the_list_anew(client, server, three, times, limits):
    """What was folded before is dropped; a cluster too slow for its own tokens is asked for everything at once."""
    server.expire_continue_tokens(times=times)

    assert read_list(client, PODS, Names, page_size=2).names == ["a", "b", "c"]
    assert [each.query.get("limit") for each in server.requests if "continue" not in each.query] == limits


def test_a_list_that_expires_even_in_one_piece_is_an_error(client, server):
    """There is no list to go by, not even an empty one."""
    server.fail("GET", PODS, status=410)

    with pytest.raises(Expired):
        read_list(client, PODS, Names, page_size=2)


def test_a_list_ends_at_its_deadline(client, server, three, time):
    server.on("GET", PODS, lambda _: time.sleep(6))

    with pytest.raises(Unreachable):
        read_list(client, PODS, Names, page_size=1, deadline=Deadline.after(10, time.clock))
    assert len(server.requests) == 2


def test_only_a_list_in_one_piece_may_be_larger_than_a_page(client, server, pod, monkeypatch):
    """A page is of a few hundred objects, and a server that sends more than a page can hold is not listened to."""
    monkeypatch.setattr(lists, "LARGEST_PAGE", 2000)
    server.add(pod("a"))
    server.add(pod("b" * 5000))

    with pytest.raises(Rejected, match="larger than 2000 bytes"):
        read_list(client, PODS, Names, page_size=1)
    assert len(read_list(client, PODS, Names, page_size=0).names) == 2
