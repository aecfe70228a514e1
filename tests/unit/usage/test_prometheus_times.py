"""The times of samples in Prometheus, where the policy asks for them."""

import pytest

from rebalancer.errors import StrategyError
from tests.fake_http import Reply
from tests.fake_servers import FakePrometheus, sample
from tests.make import NOW, cluster
from tests.unit.usage.settings import Sources, nodes, prometheus

RATIO = {"query": "cpu_ratio", "unit": "ratio", "base": "capacity", "node": {"label": "instance"}}


def measure(*taken):
    """Ask about n1, n2, ..., whose samples were taken at these times, in seconds after NOW."""

    def answer(request):
        values = [NOW.timestamp() + each for each in taken] if "timestamp" in request.query["query"] else [0.5] * 9
        result = [sample(f"n{place}", value) for place, value in enumerate(values[: len(taken)], 1)]
        return Reply(200, {"status": "success", "data": {"resultType": "vector", "result": result}})

    with FakePrometheus() as server:
        server.answers = answer
        return Sources(prometheus(server.url)).measure(
            cluster(nodes(len(taken)), []),
            source="Prometheus",
            maxSampleAge="3m",
            minFreshNodes=0,
            prometheus={"nodes": {"cpu": RATIO}},
        )


def test_a_sample_from_the_future_does_not_count():
    """A minute is forgiven."""
    found = measure(-180, 60, 61)

    assert found.missing == {"n3": "cpu: its sample is from the future, 1m1s ahead"}
    assert found.nodes.keys() == {"n1", "n2"}


def test_a_time_that_is_none_fails_the_strategy():
    """In words."""
    with pytest.raises(StrategyError, match="seconds since 1970 is not a time"):
        measure(0, 1e300)
