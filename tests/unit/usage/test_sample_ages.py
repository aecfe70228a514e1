"""How old the samples are that a cycle goes by, as it is told for each source."""

from collections.abc import Callable
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


def by_metrics_server(told: Told, *ages: float | None) -> Sources:
    times = [None if age is None else NOW - timedelta(seconds=age) for age in ages]
    used = {"cpu": 1000, "memory": 2048}
    found = Metrics([NodeMetrics(f"n{place}", used, time) for place, time in enumerate(times, 1)], ())
    return Sources({"source": "KubernetesMetrics"}, metrics=found, sampled=told)


def taken_before(**ages: float) -> Callable[[object], Reply]:
    """Answers of a Prometheus whose samples of n2 are so old in seconds, by the query; those of n1 are fresh."""

    def answer(request):
        (age,) = [age for name, age in ages.items() if name in request.query["query"]]
        of_n2 = NOW.timestamp() - age if "timestamp" in request.query["query"] else 0.5
        of_n1 = NOW.timestamp() if "timestamp" in request.query["query"] else 0.5
        result = [sample("n1", of_n1), sample("n2", of_n2)]
        return Reply(200, {"status": "success", "data": {"resultType": "vector", "result": result}})

    return answer


@pytest.mark.parametrize(
    ("ages", "oldest"),
    [
        ((20, 600, None), [("KubernetesMetrics", 600)]),
        ((None, None), []),
    ],
)
def test_the_oldest_of_metrics_server(told, ages, oldest):
    """Stale ones too, since those are what one looks for; of one without a time nobody knows."""
    ask(by_metrics_server(told, *ages), "KubernetesMetrics")

    assert told == oldest


def test_samples_that_fail_the_strategy_are_told_of(told):
    """Both are too old: the strategy fails, and the figure says by how much."""
    with pytest.raises(StrategyError, match="minFreshNodes"):
        ask(by_metrics_server(told, 600, 700), "KubernetesMetrics", minFreshNodes=80)

    assert told == [("KubernetesMetrics", 700)]


@pytest.mark.parametrize("age", [30, 3600])
def test_the_window_of_load_watcher(told, age):
    """Its end counts, also where it is so long ago that the source is refused."""
    with FakeLoadWatcher({"n1": {"CPU": 50, "Memory": 25}}, ended=NOW - timedelta(seconds=age)) as server:
        sources = Sources({"source": "LoadWatcher", "loadWatcher": {"url": server.url}}, sampled=told)
        with pytest.raises(StrategyError) if age == 3600 else nullcontext():
            ask(sources, "LoadWatcher")

    assert told == [("LoadWatcher", age)]


@pytest.mark.parametrize("wanted", [{"maxSampleAge": "3m"}, {"prometheus": {**OWN_FORM["prometheus"], "window": "1h"}}])
def test_the_oldest_of_prometheus(told, wanted):
    with FakePrometheus() as server:
        server.answers = taken_before(cpu_ratio=45, memory_ratio=400)
        ask(Sources(prometheus(server.url), sampled=told), "Prometheus", **{**OWN_FORM, **wanted})

    assert told == [("Prometheus", 400)]


@pytest.mark.parametrize("form", [OWN_FORM, THE_DESCHEDULERS_FORM])
def test_prometheus_is_not_asked_for_times_that_decide_nothing(told, form):
    """Without `maxSampleAge` and `window` there is no further query, and no age."""
    with FakePrometheus() as server:
        server.answers = taken_before(cpu_ratio=45, memory_ratio=400, busy=45)
        ask(Sources(prometheus(server.url), sampled=told), "Prometheus", **form)

    assert told == []
    assert not [each for each in server.requests if "timestamp" in str(each.query)]


def test_the_oldest_of_a_cycle_is_told_last(told):
    """Whichever strategy asks first; one that is not older is not told of."""
    with FakePrometheus() as server:
        server.answers = taken_before(cpu_ratio=45, memory_ratio=400, young=5)
        sources = Sources(prometheus(server.url), sampled=told)
        for query in ("cpu_ratio", "memory_ratio", "young"):
            queries = {"nodes": {"cpu": {**RATIO, "query": query}}}
            ask(sources, "Prometheus", maxSampleAge="10m", prometheus=queries)

    assert told == [("Prometheus", 45), ("Prometheus", 400)]


@pytest.mark.parametrize(
    ("age", "missing"), [(180, {}), (-60, {}), (-61, {"n2": "cpu: its sample is from the future, 1m1s ahead"})]
)
def test_a_sample_from_the_future_does_not_count(told, age, missing):
    """A minute is forgiven."""
    assert by_prometheus(told, age).missing == missing


def test_a_time_that_is_none_fails_the_strategy(told):
    with pytest.raises(StrategyError, match="seconds since 1970 is not a time"):
        by_prometheus(told, -1e300)


def by_prometheus(told, age):
    """What is found where the sample of n2 is so old, in seconds."""
    with FakePrometheus() as server:
        server.answers = taken_before(cpu_ratio=age)
        queries = {"nodes": {"cpu": RATIO}}
        return ask(Sources(prometheus(server.url), sampled=told), "Prometheus", maxSampleAge="3m", prometheus=queries)
