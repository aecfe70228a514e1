"""Columns hold what was put in, and each rule is equal to a slow model written from its description."""

from array import array
from datetime import UTC, datetime
from fractions import Fraction
from math import ceil
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.errors import UsageError
from rebalancer.recommendation.rules import MEBI, Amounts, peak_mean, quantile, seed_literal, target
from rebalancer.recommendation.samples import (
    MISSING,
    ContainerOfPod,
    MeasuredContainers,
    OfPod,
    PodSeries,
    Samples,
    found_peaks,
    hourly_totals,
    parse_windows,
    spans_of,
)
from rebalancer.recommendation.workloads import History, Workload, recommend, workload_by_name

DAY = 86_400
WINDOWS = parse_windows("10:00-11:00,13:00-15:00", "mon-sun")


class Sample(NamedTuple):
    """What a slow model looks at: one object each, memory in bytes."""

    time: int
    pod: str
    cpu: int
    memory: int
    starting: bool = False


def in_columns(samples, started=None):
    """Return samples as rules get them; a pod has started up from a time on."""
    times = sorted({each.time for each in samples})
    series = {}
    for each in samples:
        pod = series.setdefault(each.pod, PodSeries(times))
        pod.put(times.index(each.time), array("f", [each.cpu / 1000]), array("f", [each.memory]))
    days = {time: WINDOWS.day_of(datetime.fromtimestamp(time, UTC)) for time in times}
    pods = [OfPod(name, found, [(0, (started or {}).get(name, 0))]) for name, found in series.items()]
    return Samples(pods, spans_of(times, days))


class Drawn(NamedTuple):
    """The same samples for the model and for the rule."""

    samples: list[Sample]
    columns: Samples


@st.composite
def histories(draw):
    """A few days of samples, many at the edges of windows, some of containers that start; one at 10:30 is steady."""
    cpu, memory = st.integers(1, 4000), st.integers(1, 4096).map(lambda each: each * MEBI)
    clock = st.sampled_from([0, 9.5, 10, 10.75, 11, 13, 14.75, 15, 20])
    times = st.builds(lambda day, hour: day * DAY + int(hour * 3600), st.integers(0, 5), clock)
    places = draw(st.lists(st.tuples(times, st.sampled_from(["a", "b"])), max_size=60, unique=True))
    began = {"a": draw(st.sampled_from([0, 10 * 3600])), "b": draw(times)}
    steady = (5 * DAY + 10 * 3600 + 1800, "a")
    found = [Sample(time, pod, draw(cpu), draw(memory), time < began[pod]) for time, pod in [*places, steady]]
    return Drawn(found, in_columns(found, began))


def upwards(value, floor):
    return max(floor, ceil(value))


def model_mean_of_peaks(samples, resource):
    """Look at every day in turn, and at every sample of it."""
    peaks = []
    for day in range(21):
        values = [
            int(getattr(each, resource))
            for each in samples
            if each.time // DAY == day and (10 <= each.time % DAY / 3600 < 11 or 13 <= each.time % DAY / 3600 < 15)
        ]
        peaks += [max(values)] if values else []
    return Fraction(sum(peaks), len(peaks))


@given(histories(), st.sampled_from([Fraction(6, 10), Fraction(75, 100), Fraction(9, 10)]), st.booleans())
def test_peak_mean_is_the_mean_of_the_days_peaks(drawn, share, core):
    """Limits see starts too; a limit of memory is never below the highest value plus 15 %."""
    samples = drawn.samples
    steady = [each for each in samples if not each.starting]
    highest = Fraction(max(int(each.memory) for each in samples)) * 115 / 100
    cpu_limit = upwards(model_mean_of_peaks(samples, "cpu"), 10)
    literal = upwards(model_mean_of_peaks(samples, "memory") / MEBI, 32) * MEBI
    memory_limit = upwards(max(model_mean_of_peaks(samples, "memory"), highest) / MEBI, 32) * MEBI
    cpu = upwards(model_mean_of_peaks(steady, "cpu") * share, 10)
    memory = upwards(model_mean_of_peaks(steady, "memory") * share / MEBI, 32) * MEBI

    safe = peak_mean(drawn.columns, float(share), core)
    seed = seed_literal(drawn.columns, float(share), core)

    if core:
        cpu, memory = cpu_limit, memory_limit
    assert (safe.cpu_request, safe.cpu_limit) == (cpu, max(cpu, cpu_limit))
    assert (safe.memory_request, safe.memory_limit) == (memory, max(memory, memory_limit))
    memory = literal if core else memory
    assert (seed.memory_request, seed.memory_limit) == (memory, max(memory, literal))


@given(histories())
def test_quantile_is_that_of_the_pod_that_needs_most(drawn):
    """The quantile is walked to between the neighbours, pod by pod."""
    samples = drawn.samples
    wanted = Fraction(0)
    for pod in ("a", "b"):
        values = sorted(int(each.cpu) for each in samples if each.pod == pod and not each.starting)
        if values:
            rank = Fraction(95, 100) * (len(values) - 1)
            below, above = values[int(rank)], values[min(int(rank) + 1, len(values) - 1)]
            wanted = max(wanted, below + (above - below) * (rank - int(rank)))
    memory = upwards(Fraction(max(int(each.memory) for each in samples)) * 115 / 100 / MEBI, 32) * MEBI

    need = quantile(drawn.columns, 0.75, False)

    assert (need.cpu_request, need.cpu_limit) == (upwards(wanted, 10), None)
    assert (need.memory_request, need.memory_limit) == (memory, memory)


@given(histories())
def test_target_lets_older_samples_count_less(drawn):
    """The lowest of all values that has nine tenths of the weight below or at it."""
    samples = drawn.samples
    newest = max(each.time for each in samples)
    steady = [each for each in samples if not each.starting]

    def lowest(pairs):
        enough = 0.9 * sum(weight for _, weight in pairs)
        reached = [v for v, _ in pairs if sum(w for value, w in pairs if value <= v) >= enough * (1 - 1e-12)]
        return min(reached) * 1.15

    peaks = {}
    for each in samples:
        age = (newest - each.time) // DAY
        peaks[age] = max(peaks.get(age, 0), each.memory)
    need = target(drawn.columns, 0.75, False)

    assert need.cpu_request == pytest.approx(
        max(10, lowest([(each.cpu, 2.0 ** (-(newest - each.time) / DAY)) for each in steady])), abs=1
    )
    memory = lowest([(value, 2.0**-age) for age, value in peaks.items()])
    assert need.memory_request == pytest.approx(max(32 * MEBI, memory), abs=MEBI)
    assert (need.cpu_limit, need.memory_limit) == (None, None)


def history(values, now=None):
    found = [Sample(day * DAY + 10 * 3600, "web-0", value, 100 * MEBI) for day, value in enumerate(values)]
    return History(Workload("shop", "Deployment", "web"), "app", in_columns(found), now, by_name=False)


@pytest.mark.parametrize(("cpu", "fine"), [(75, True), (82, True), (84, False), (60, False), (None, False)])
def test_what_differs_by_less_than_a_tenth_is_fine(cpu, fine):
    now = Amounts(cpu, 100, 75 * MEBI, 115 * MEBI)

    assert recommend(history([100] * 14, now), peak_mean, 0.75, 14, 1, core=False).fine is fine


def test_a_window_over_midnight_belongs_to_the_day_on_which_it_begins():
    """Tuesday 01:00 is Monday's, and counts where only Monday does; a whole day begins and ends at midnight."""
    night = parse_windows("22:00-02:00", "mon")

    assert night.day_of(datetime(2023, 5, 9, 1, 0, tzinfo=UTC)) == datetime(2023, 5, 8, tzinfo=UTC).date()
    assert night.day_of(datetime(2023, 5, 8, 1, 0, tzinfo=UTC)) is None
    assert night.day_of(datetime(2023, 5, 9, 2, 0, tzinfo=UTC)) is None
    assert WINDOWS.day_of(datetime(2023, 5, 9, 11, 0, tzinfo=UTC)) is None
    begins, ends = datetime(2023, 5, 8, tzinfo=UTC), datetime(2023, 5, 8, 23, 59, tzinfo=UTC)
    assert {parse_windows("00:00-24:00", "mon").day_of(each) for each in (begins, ends)} == {begins.date()}


@pytest.mark.parametrize(("peak", "days"), [("10-11", "mon"), ("25:00-26:00", "mon"), ("10:00-11:00", "monday")])
def test_a_window_that_cannot_be_read_is_named(peak, days):
    with pytest.raises(UsageError, match="write it like"):
        parse_windows(peak, days)


def test_peaks_are_found_where_most_is_used():
    """Hour 10 uses 900m, hour 20 800m, all others 100m; the bar is at 740m."""
    totals = [(datetime(2023, 5, 8, hour, tzinfo=UTC), {10: 900.0, 20: 800.0}.get(hour, 100.0)) for hour in range(24)]

    found = found_peaks(hourly_totals(totals), frozenset(range(7)))

    assert [(begin.hour, end.hour) for begin, end in found.spans] == [(10, 11), (20, 21)]


@pytest.mark.parametrize(
    ("pod", "kind", "name"),
    [
        ("web-5d8f7b9c64-x2x7k", "Deployment", "web"),
        ("db-0", "StatefulSet", "db"),
        ("agent-x2x7k", "DaemonSet", "agent"),
        ("nightly-28013040-x2x7k", "CronJob", "nightly"),
        ("lonely", "Pod", "lonely"),
        ("web-frontend", "Pod", "web-frontend"),
    ],
)
def test_a_name_tells_the_workload(pod, kind, name):
    """Names that Kubernetes makes have no vowels."""
    assert workload_by_name("shop", pod) == Workload("shop", kind, name)


TIMES = range(1_000_000, 1_000_000 + 900 * 300, 300)
NAME = ContainerOfPod("shop", "web-0", "app")
#: Where a piece begins, and its samples; None is a gap.
PIECES = st.lists(
    st.tuples(
        st.integers(0, 880),
        st.lists(st.none() | st.integers(0, 4000), min_size=1, max_size=20),
    ),
    max_size=6,
)


@given(PIECES)
def test_columns_have_every_sample_once_in_the_order_of_time(pieces):
    """Beside a dictionary, which is what columns stand for; pieces come in any order."""
    measured, model, taken = MeasuredContainers(TIMES), {}, set()
    for first, values in pieces:
        places = range(first, first + len(values))
        if taken.isdisjoint(places):
            taken.update(places)
            cpu = array("f", [MISSING if value is None else value / 1000 for value in values])
            memory = array("f", [MISSING if value is None else value * 4096 for value in values])
            measured.put(NAME, first, cpu, memory)
            model |= {place: value for place, value in zip(places, values, strict=True) if value is not None}
    series = measured.series.get(NAME)
    if not model:
        return

    columns = series.columns()

    assert len(series) == len(model)
    assert list(columns.times) == [TIMES[place] for place in sorted(model)]
    assert [round(each * 1000) for each in columns.cpu] == [model[place] for place in sorted(model)]
    assert list(columns.memory) == [model[place] * 4096 for place in sorted(model)]
    assert series.first_time() == columns.times[0]
    assert [place for place, total in enumerate(measured.totals) if total] == [
        place for place in sorted(model) if model[place]
    ]
