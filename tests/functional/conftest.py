"""The program and a fake API server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rebalancer.kube.tries import RetryPolicy
from tests.fake_api_server import FakeApiServer
from tests.fake_servers import FakePrometheus
from tests.functional.marking import CALM, Marker, fill, loads
from tests.functional.objects import old_pods, two_nodes_with
from tests.functional.program import Program


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the waits between two tries last a moment; how long they are is what tests of RetryPolicy show."""
    wait = RetryPolicy.wait
    monkeypatch.setattr(RetryPolicy, "wait", lambda policy, seconds: wait(policy, min(seconds, 0.01)))


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with FakeApiServer() as running:
        yield running


@pytest.fixture
def two(server: FakeApiServer) -> FakeApiServer:
    server.add(*two_nodes_with(*old_pods("a", "b")))
    return server


@pytest.fixture
def three(server: FakeApiServer) -> FakeApiServer:
    server.add(*two_nodes_with(*old_pods("a", "b", "c")))
    return server


@pytest.fixture
def many(server: FakeApiServer) -> FakeApiServer:
    server.add(*two_nodes_with(*old_pods(*(f"p{number:02}" for number in range(40)))))
    return server


@pytest.fixture
def rebalancer(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path)
    yield program
    program.close()


@pytest.fixture
def prometheus() -> Iterator[FakePrometheus]:
    """One that sees two nodes under pressure."""
    with FakePrometheus() as running:
        loads(running, {**CALM, "n1": 95.0, "n2": 85.0})
        yield running


@pytest.fixture
def mark(rebalancer: Program, server: FakeApiServer, prometheus: FakePrometheus) -> Marker:
    fill(server)
    return Marker(rebalancer, server, prometheus)
