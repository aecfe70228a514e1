"""How old the samples are that a cycle goes by, as it is told for each source."""

from contextlib import nullcontext
from datetime import timedelta

import pytest

from rebalancer.cluster.measured import Measured, NodeMetrics
from rebalancer.errors import StrategyError
from rebalancer.usage.metrics_server import Metrics
from tests.fake_http import Reply
from tests.fake_servers import FakeLoadWatcher, FakePrometheus, sample
from tests.make import NOW, cluster
from tests.unit.usage.settings import Sources, nodes, prometheus

RATIO = {"query": "cpu_ratio", "unit": "ratio", "base": "capacity", "node": {"label": "instance"}}
OWN_FORM = {"prometheus": {"nodes": {"cpu": RATIO, "memory": {**RATIO, "query": "memory_ratio"}}}}
THE_DESCHEDULERS_FORM = {"prometheus": {"query": "busy"}}


class Told(list[tuple[str, float]]):
    """The sources that were told of, with the age of the oldest sample in seconds."""

    def __call__(self, source, taken):
        self.append((source, (NOW - taken).total_seconds()))


@pytest.fixture
def told() -> Told:
    return Told()


def ask(sources: Sources, source: str, **wanted) -> Measured:
    return sources.measure(cluster(nodes(2), []), source=source, **{"minFreshNodes": 0, **wanted})


def of_cpu(query: str = "cpu_ratio", longest: str = "3m") -> dict:
    return {"maxSampleAge": longest, "prometheus": {"nodes": {"cpu": {**RATIO, "query": query}}}}


@pytest.fixture
def by_prometheus(told):
    """Asks a Prometheus whose samples of n2 are so old in seconds, by the query; those of n1 are fresh."""
    with FakePrometheus() as server:
        sources = Sources(prometheus(server.url), sampled=told)

        def asked(wanted, **ages: float) -> Measured:
            def answer(request):
                (age,) = [age for name, age in ages.items() if name in request.query["query"]]
                now = NOW.timestamp()
                values = (now, now - age) if "timestamp" in request.query["query"] else (0.5, 0.5)
                result = [sample("n1", values[0]), sample("n2", values[1])]
                return Reply(200, {"status": "success", "data": {"resultType": "vector", "result": result}})

            server.answers = answer
            return ask(sources, "Prometheus", **wanted)

        asked.server = server
        yield asked


@pytest.mark.parametrize(
    ("ages", "min_fresh", "oldest"),
    [
        ((20, 600, None), 0, [("KubernetesMetrics", 600)]),
        ((None, None), 0, []),
        ((600, 700), 80, [("KubernetesMetrics", 700)]),
    ],
)
def test_the_oldest_of_metrics_server(told, ages, min_fresh, oldest):
    """Stale ones too, also where they fail the strategy; of one without a time nobody knows."""
    times = [None if age is None else NOW - timedelta(seconds=age) for age in ages]
    used = {"cpu": 1000, "memory": 2048}
    found = Metrics([NodeMetrics(f"n{place}", used, time) for place, time in enumerate(times, 1)], ())
    with pytest.raises(StrategyError, match="minFreshNodes") if min_fresh else nullcontext():
        sources = Sources({"source": "KubernetesMetrics"}, metrics=found, sampled=told)
        ask(sources, "KubernetesMetrics", minFreshNodes=min_fresh)

    assert told == oldest


@pytest.mark.parametrize("age", [30, 3600])
def test_the_window_of_load_watcher(told, age):
    """Its end counts, also where it is so long ago that the source is refused."""
    with FakeLoadWatcher({"n1": {"CPU": 50, "Memory": 25}}, ended=NOW - timedelta(seconds=age)) as server:
        sources = Sources({"source": "LoadWatcher", "loadWatcher": {"url": server.url}}, sampled=told)
        with pytest.raises(StrategyError) if age == 3600 else nullcontext():
            ask(sources, "LoadWatcher")

    assert told == [("LoadWatcher", age)]


@pytest.mark.parametrize(
    ("wanted", "oldest"),
    [
        ({**OWN_FORM, "maxSampleAge": "3m"}, [("Prometheus", 400)]),
        ({"prometheus": {**OWN_FORM["prometheus"], "window": "1h"}}, [("Prometheus", 400)]),
        (OWN_FORM, []),
        (THE_DESCHEDULERS_FORM, []),
    ],
)
def test_the_oldest_of_prometheus(told, by_prometheus, wanted, oldest):
    """Of all resources and nodes; it is not asked for times that decide nothing."""
    by_prometheus(wanted, cpu_ratio=45, memory_ratio=400, busy=45)

    assert told == oldest
    assert any("timestamp" in str(each.query) for each in by_prometheus.server.requests) is bool(oldest)


def test_the_oldest_of_a_cycle_is_told_last(told, by_prometheus):
    """Whichever strategy asks first; one that is not older is not told of."""
    for query, age in (("cpu_ratio", 45), ("memory_ratio", 400), ("young", 5)):
        by_prometheus(of_cpu(query, "10m"), **{query: age})

    assert told == [("Prometheus", 45), ("Prometheus", 400)]
