"""One look at a pod, and the last looks: how long they may take."""

import pytest

from rebalancer.kube.eviction_request import PodLook

POD = "/api/v1/namespaces/default/pods/a"


@pytest.fixture
def look(client, time):
    """Look at pod a, which the server does not have."""
    return lambda **settings: PodLook(client, POD, "uid-of-a", time.retry_policy(**settings))


@pytest.mark.parametrize(("seconds", "believed"), [(4.9, True), (5.1, False)])
def test_an_answer_that_takes_more_than_five_seconds_is_not_read(look, server, time, seconds, believed):
    """Looks go on after the deadline or a signal, so each of them has a bound."""
    server.on("GET", POD, lambda _: time.sleep(seconds))

    assert look().is_gone() == believed


@pytest.mark.parametrize(("wait", "looks"), [(4.9, 2), (5.1, 1)])
def test_the_last_looks_take_five_seconds_together(look, server, pod, wait, looks):
    """However long the policy for evictions goes on: none begins later than that."""
    server.add(pod("a"))

    assert not look(seconds=3600, first_wait=wait).is_gone_at_last()
    assert len(server.requests) == looks


def test_the_last_looks_go_on_where_the_server_has_trouble(look, server):
    """An API server that restarts says 503 at first."""
    server.fail("GET", POD, status=503, times=1)

    assert look(first_wait=1.0).is_gone_at_last()
