"""A fake API server, a client for it, and a time that passes only when somebody waits."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from rebalancer.kube.client import Client
from rebalancer.kube.config import connect
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
def client_of(tmp_path, time):
    """Make a client of a server, whose kubeconfig has these settings for the cluster and the user."""

    def make(of, **settings):
        found = connect(str(of.kubeconfig(tmp_path, **settings)), None, environ={})
        return Client(found, retry_policy=time.retry_policy())

    return make


@pytest.fixture
def connection(client_of, server):
    return client_of(server).connection


@pytest.fixture
def client(connection, time) -> Client:
    return Client(connection, request_timeout=60.0, retry_policy=time.retry_policy())


@pytest.fixture
def secure() -> Iterator[FakeApiServer]:
    """A server that speaks HTTPS, with a certificate that nobody else trusts."""
    with FakeApiServer(tls=True) as running:
        yield running


@pytest.fixture
def pod():
    def make(name, **labels):
        metadata = {"name": name, "namespace": "default", "uid": f"uid-of-{name}", "labels": labels}
        ready = [{"type": "Ready", "status": "True"}]
        return {"kind": "Pod", "metadata": metadata, "status": {"phase": "Running", "conditions": ready}}

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
    """Evict a pod, by default pod a, which the server has."""
    server.add(pod("a", app="web"))
    return lambda name="a", uid="", by=evictions, **said: by.evict(
        "default", name, uid or f"uid-of-{name}", **WHO | said
    )
