"""A fake API server, a client for it, and a time that passes only when somebody waits."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rebalancer.kube.client import Client
from rebalancer.kube.config import Connection, connect
from rebalancer.kube.evictions import Evictions
from rebalancer.kube.tries import Halt, RetryPolicy
from tests.fake_api_server import FakeApiServer


@dataclass
class FakeTime:
    """A clock that only `sleep` moves; `waits` are the seconds slept."""

    now: float = 1000.0
    waits: list[float] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def retry_policy(self, seconds: float = 30.0, **settings) -> RetryPolicy:
        """Return a retry policy in this time, without chance: it waits the longest its jitter allows."""
        settings = {"clock": self.clock, "sleep": self.sleep, "jitter": lambda _, high: high} | settings
        return RetryPolicy(seconds, **settings)


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with FakeApiServer() as running:
        yield running


@pytest.fixture
def connection(server: FakeApiServer, tmp_path: Path) -> Iterator[Connection]:
    found = connect(str(server.kubeconfig(tmp_path)), None, environ={})
    yield found
    found.close()


@pytest.fixture
def client(connection: Connection, time: FakeTime) -> Client:
    return Client(connection, request_timeout=60.0, retry_policy=time.retry_policy())


@pytest.fixture
def secure() -> Iterator[FakeApiServer]:
    """A server that speaks HTTPS, with a certificate that nobody else trusts."""
    with FakeApiServer(tls=True) as running:
        yield running


@pytest.fixture
def client_of(secure: FakeApiServer, tmp_path: Path, time: FakeTime) -> Iterator[Callable[..., Client]]:
    """Make a client whose kubeconfig has these settings for the cluster."""
    opened: list[Connection] = []

    def make(**cluster: object) -> Client:
        opened.append(connect(str(secure.kubeconfig(tmp_path, **cluster)), None, environ={}))
        return Client(opened[-1], retry_policy=time.retry_policy())

    yield make
    for connection in opened:
        connection.close()


@pytest.fixture
def pod() -> Callable[..., dict]:
    """Make a pod for the server."""

    def make(name: str, *, namespace: str = "default", uid: str = "", phase: str = "Running", **labels: str) -> dict:
        metadata = {"name": name, "namespace": namespace, "uid": uid or f"uid-of-{name}", "labels": labels}
        ready = [{"type": "Ready", "status": "True"}]
        return {"kind": "Pod", "metadata": metadata, "status": {"phase": phase, "conditions": ready}}

    return make


#: What is said of an eviction beside the pod, which has not changed.
WHO = {
    "resource_version": "",
    "recheck": lambda _: pytest.fail("it was read again"),
    "profile": "default",
    "strategy": "PodLifeTime",
    "reason": "older than 1 day",
}


@pytest.fixture
def evictions(client, time):
    return Evictions(client, time.retry_policy(), Halt())


@pytest.fixture
def evict(evictions, server, pod):
    """Evict pod a, which the server has."""
    server.add(pod("a", app="web"))
    return lambda uid="uid-of-a": evictions.evict("default", "a", uid, **WHO)
