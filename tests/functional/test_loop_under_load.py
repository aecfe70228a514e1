"""A loop whose port is scraped hard and abused: its cycles go on, and nothing is left behind."""

import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.waiting import wait_for
from tests.functional.objects import OLD, old_pods, policy, two_nodes_with
from tests.functional.probing import ask, ask_once
from tests.functional.test_loop import FAILED, SUCCEEDED, Loop

SCRAPES = 200
SLOW = 250


@pytest.fixture
def loop(server, rebalancer):
    """A loop that finds something to look at and nothing to do."""
    for each in two_nodes_with(*old_pods("a", "b", "c")):
        server.add(each)
    return Loop(rebalancer, server, policy(OLD, maxNoOfPodsToEvictTotal=0))


def descriptors(process):
    return len(list(Path(f"/proc/{process.pid}/fd").iterdir()))


def slow_client(port):
    """Begins a request and never goes on."""
    return socket.create_connection(("127.0.0.1", port), timeout=120)


def rude_client(port):
    """Sends what no probe sends: endless headers."""
    context = ssl._create_unverified_context()
    with socket.create_connection(("127.0.0.1", port), timeout=120) as plain, context.wrap_socket(plain) as client:
        try:
            client.sendall(b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 200_000)
        except OSError:
            return


def test_cycles_go_on_under_scrapes_and_slow_clients(loop):
    """Scrapes and more slow clients than there are connections; each probe is answered, each cycle runs."""
    loop.wait_metric(SUCCEEDED, 3)
    before = descriptors(loop.process)
    good = loop.metric(SUCCEEDED)
    slow = [slow_client(loop.port) for _ in range(SLOW)]

    with ThreadPoolExecutor(8) as pool:
        rude = [pool.submit(rude_client, loop.port) for _ in range(20)]
        answers = list(pool.map(lambda _: ask_once(loop.port, "/metrics").status, range(SCRAPES)))
    done = [each.result() for each in rude]
    last = slow[-1]
    last.sendall(b"GET")  # no TLS: dropped
    for each in slow:
        each.close()

    assert answers == [200] * SCRAPES
    assert len(done) == 20
    assert ask(loop.port, "/healthz").status == 200
    assert loop.metric(SUCCEEDED) >= good + 3
    assert loop.metric(FAILED) == 0
    wait_for(lambda: descriptors(loop.process) <= before, "no descriptor more than before")
    assert loop.end().exit_code == 0
