"""What the coming hours looked like on earlier days, by a real Prometheus: who is left alone, and who is not filled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, json

from rebalancer.balancing.usage import falls
from rebalancer.balancing.utilization import NodeUtilization
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import ComingLoad
from rebalancer.policy.usage import PrometheusUsage
from rebalancer.report.words import notice_text, text
from rebalancer.usage.history import RangeAnswer, RangeSeries
from rebalancer.usage.prometheus import measured as measured_by_prometheus
from rebalancer.usage.prometheus import quantile_of
from strategies.low_node_utilization import LowNodeUtilization, LowNodeUtilizationArgs
from tests.make import NOW, cluster, decide, evicted, pod, refused, snapshot
from tests.real_prometheus import RealPrometheus, Series, needed
from tests.unit.usage.settings import Sources, nodes, prometheus

HOUR, DAY = 3600, 86_400
#: On so many days ago the peak of n1 went on.
LONGER = (3, 6)
NODES = {"cpu": {"query": "used_cores", "unit": "cores"}}
PODS = {"cpu": {"query": "pod_cores", "unit": "cores"}}


def time_of_day(age):
    """Seconds from this time of day, from -12 h to 12 h, and how many days ago."""
    day = round(age / DAY)
    return day * DAY - age, day


def ends_soon(age):
    """90 % of three cores until half an hour after this time of day, and 30 % otherwise; on two days for longer."""
    ahead, day = time_of_day(age)
    return 2.7 if -2 * HOUR <= ahead < (3 * HOUR if day in LONGER else HOUR // 2) else 0.9


def fills_soon(age):
    """10 %, and 80 % from half an hour after this time of day on, for an hour."""
    return 2.4 if HOUR // 2 <= time_of_day(age)[0] < 3 * HOUR // 2 else 0.3


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    courses = {"n1": ends_soon, "n2": lambda _: 2.7, "n3": fills_soon, "n4": lambda _: 0.3}
    past = [Series("used_cores", {"instance": name}, course, 8 * DAY, 300) for name, course in courses.items()]
    past += [Series("pod_cores", {"namespace": "default", "pod": name}, lambda _: 1.0) for name in ("a", "b")]
    with RealPrometheus(tmp_path_factory.mktemp("prometheus"), past) as running:
        yield running


def decided(server, coming):
    """A plan by which nodes are to use at most 60 % of cpu; the scheduler is unknown, so that the emptiest is taken."""
    asked = {"nodes": NODES, "pods": PODS, **({"coming": coming} if coming else {})}
    metrics = {"source": "Prometheus", "selection": "relief", "scheduler": "unknown", "prometheus": asked}
    args = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 60}, "metricsUtilization": metrics}
    sources = Sources(prometheus(server.url))
    pods = [pod("a", node="n1", owners="a"), pod("b", node="n2", owners="b"), pod("c", node="n4", cpu="500m")]
    on = Cluster(snapshot(nodes(4), pods), measure=lambda on, _: sources.measure(on, **metrics))
    return decide(on, LowNodeUtilization(LowNodeUtilizationArgs.model_validate(args)))


@needed
def test_what_falls_by_itself_stays_and_what_fills_by_itself_receives_nothing(server):
    """n1 falls in half an hour as on five of seven days; n3 is the emptiest by requests, and was full soon after."""
    ledger = decided(server, {"sameHour": "7d", "quantile": 0.9})

    assert (evicted(ledger), refused(ledger)) == (["b"], {"a": "FallsByItself"})
    assert ledger.evictions[0].destination.nodes == ("n4",)
    assert text(ledger.refusals[0].verdict.cause) == "n1 over now, falls by itself at 12:30 UTC as on 5 of 7 days"
    assert any("n1 over now, falls by itself" in notice_text(each) for each in ledger.warnings)


@needed
def test_without_it_this_cycle_alone_counts(server):
    ledger = decided(server, None)

    assert sorted(evicted(ledger)) == ["a", "b"]
    assert ledger.evictions[0].destination.nodes == ("n3",)


@needed
def test_days_that_nobody_has_measured_say_nothing(server):
    assert text(decided(server, {"sameHour": "30d"}).refusals[0].verdict.cause).endswith("as on 6 of 8 days")


def test_a_day_counts_if_both_resources_were_measured_on_it():
    """cpu fell on three of four days, memory on the second and the fourth; on the first nothing is known of it."""
    known = {"cpu": (1, 2, 3, 4), "memory": (2, 3, 4)}
    fell = {"cpu": (1, 2, 3), "memory": (2, 4)}
    now = round(NOW.timestamp())

    def ask_range(name, start, end, step):
        day = round((now - start) / DAY)
        times = range(round(start), round(end) + 1, step)
        values = [[time, "0" if day in fell[name] and time > now - day * DAY else "2700"] for time in times]
        series = RangeSeries(Raw(b'{"instance": "n1"}'), Raw(json.encode(values)))
        return RangeAnswer([series] if day in known[name] else [])

    queries = {"cpu": {"query": "cpu", "unit": "cores"}, "memory": {"query": "memory", "unit": "bytes"}}
    wanted = PrometheusUsage.model_validate({"nodes": queries, "coming": {"sameHour": "4d"}})
    measured = measured_by_prometheus(lambda _: (), wanted, None, cluster(nodes(1), []), ask_range)
    node = NodeUtilization(nodes(1)[0], {"cpu": 2_700_000, "memory": 1 << 40})

    assert falls(node, {"cpu": 60.0, "memory": 0.000001}, measured.coming) is None


COURSES = st.lists(st.dictionaries(st.integers(-12, 24).map(lambda step: step * 300), st.integers(0, 3000)), max_size=7)


@given(COURSES, st.integers(1, 7))
def test_only_a_load_that_fell_on_most_days_is_waited_for(courses, days):
    """At the end of the hour it was within its target on each of the days that are told."""
    node = NodeUtilization(nodes(1)[0], {"cpu": 2700})
    found = falls(node, {"cpu": 60.0}, ComingLoad(days, {"cpu": {"n1": tuple(courses)}}))

    if found is None:
        return
    after, fell, of = found
    assert 0 <= after.total_seconds() <= HOUR
    assert 2 * fell > of >= min(3, days)
    ends = [max((ahead for ahead in course if 0 <= ahead <= HOUR), default=None) for course in courses]
    assert sum(end is not None and course[end] <= 1800 for course, end in zip(courses, ends, strict=True)) >= fell


@given(COURSES, st.floats(0, 1))
def test_the_quantile_is_one_of_the_values_to_come(courses, quantile):
    values = [used for course in courses for ahead, used in course.items() if ahead >= 0]
    found = quantile_of(courses, quantile)

    assert found in values if values else found is None
    assert quantile_of(courses, 1.0) == max(values, default=None)
