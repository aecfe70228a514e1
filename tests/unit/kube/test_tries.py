"""When another try is worth it, and where the kubeconfig is without a HOME."""

import threading

import pytest

from rebalancer.kube.answers import Transient
from rebalancer.kube.client import Client
from rebalancer.kube.config import connect

PODS = "/api/v1/pods"


def test_a_server_that_breaks_connections_is_tried_as_long_as_there_is_time(client, server):
    """Only one that cannot be reached at all is given up after a few tries."""
    server.reset("GET", PODS, times=5)

    assert b'"PodList"' in client.get(PODS)


def test_told_to_stop_it_ends_with_what_the_server_said(connection, server, time):
    """The failure at hand is the one to be told, not that a wait was cut short."""
    stop = threading.Event()
    server.on("GET", PODS, lambda _: stop.set())
    server.fail("GET", PODS, status=503, message="come back later")
    client = Client(connection, request_timeout=5.0, retry_policy=time.retry_policy(stop=stop))

    with pytest.raises(Transient, match="come back later"):
        client.get(PODS)
    assert time.waits == []


def test_without_home_the_home_of_the_user_counts(server, tmp_path, monkeypatch):
    """A service may be started without the variable."""
    monkeypatch.setenv("HOME", str(tmp_path))  # this process has one, what it looks at has none
    (tmp_path / ".kube").mkdir()
    server.kubeconfig(tmp_path).rename(tmp_path / ".kube" / "config")

    assert connect(None, None, environ={}).server == server.url
