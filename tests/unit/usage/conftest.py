"""A Prometheus that knows two nodes, over plain HTTP and over TLS."""

import pytest

from tests.fake_servers import FakePrometheus, sample


@pytest.fixture
def server():
    with FakePrometheus([sample("n1", 0.5), sample("n2", 0.25)]) as running:
        yield running


@pytest.fixture
def secure():
    with FakePrometheus([sample("n1", 0.5), sample("n2", 0.25)], tls=True) as running:
        yield running
