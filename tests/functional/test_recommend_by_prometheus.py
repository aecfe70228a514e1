"""`rebalancer recommend` on the history of a real Prometheus, with the plain text of `kubectl top` as its model."""

import json
from datetime import timedelta
from math import pi, sin

import pytest
from click.testing import CliRunner

from rebalancer.cli.main import main
from tests.make import NOW
from tests.real_prometheus import RealPrometheus, Series, needed

DAYS, STEP = 4, 1800
DAY = 86_400
MIB = 1 << 20
QUERIES = ("--cpu-query", "used_cores", "--memory-query", "used_bytes")
ASKED = ("--peak", "10:00-16:00", "--min-days", "3", "--min-samples", "20", "-o", "json")

pytestmark = needed


def time_of(age):
    return NOW - timedelta(seconds=age)


def millicores(pod, age):
    """A day's wave, higher from day to day, with a gap; two replicas of unlike load, one of which began later."""
    at = time_of(age)
    if pod == "web-5d8f7b9c64-b4b4b" and age > 3 * DAY:
        return None
    if at.day == time_of(DAY).day and at.hour == 3:
        return None
    wave = 1 + sin(2 * pi * (at.hour - 6) / 24)
    return round((200 if pod.endswith("x2x7k") else 90) * wave + 10 * (DAYS - age // DAY))


def mebibytes(pod, age):
    return 100 + 20 * time_of(age).hour + len(pod)


PODS = ("web-5d8f7b9c64-x2x7k", "web-5d8f7b9c64-b4b4b", "db-0")


@pytest.fixture(scope="module")
def past():
    def of(name, value):
        return [
            Series(name, {"namespace": "shop", "pod": pod, "container": "app"}, value(pod), DAYS * DAY, STEP)
            for pod in PODS
        ]

    cores = of(
        "used_cores", lambda pod: lambda age: None if millicores(pod, age) is None else millicores(pod, age) / 1000
    )
    return [*cores, *of("used_bytes", lambda pod: lambda age: mebibytes(pod, age) * MIB)]


@pytest.fixture(scope="module")
def server(tmp_path_factory, past):
    with RealPrometheus(tmp_path_factory.mktemp("data"), past) as running:
        yield running


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """What the same samples give as files."""
    folder = tmp_path_factory.mktemp("samples")
    for age in range(DAYS * DAY, -1, -STEP):
        used = [(pod, millicores(pod, age), mebibytes(pod, age)) for pod in PODS]
        lines = [f"shop {pod} app {cpu}m {memory}Mi" for pod, cpu, memory in used if cpu is not None]
        (folder / f"resource-{time_of(age):%Y%m%d%H%M%S}.txt").write_text("\n".join([*lines, ""]))
    return containers(CliRunner().invoke(main, ["recommend", "--samples", str(folder), *ASKED]))


def containers(outcome):
    assert outcome.exit_code == 0, outcome.output
    return json.loads(outcome.stdout)["containers"]


def asked(server, *more):
    where = ["--prometheus", server.url, "--history", f"{DAYS * DAY}s", "--step", f"{STEP}s", "--now", NOW.isoformat()]
    return CliRunner().invoke(main, ["recommend", *where, *QUERIES, *ASKED, *more])


def test_the_history_of_a_server_gives_what_its_samples_give(tmp_path, server, past, expected):
    """Also where the server refuses larger answers: pieces are halved until it bears them, and nothing is missing."""
    with RealPrometheus(tmp_path, past, options=("--query.max-samples=50",)) as sparing:
        outcomes = asked(server), asked(sparing)

    assert [containers(each) for each in outcomes] == [expected, expected]
    assert {each["name"] for each in expected} == {"web", "db"}
    assert all(each["recommended"] for each in expected)
    assert not any("missing" in each.stderr for each in outcomes)


def test_default_queries_are_those_of_the_kubelet(tmp_path):
    """A container that uses half a core all the time, by cAdvisor's counter; other series do not count."""
    labels = {"namespace": "shop", "pod": "db-0"}
    total = {**labels, "container": ""}
    counters = [
        Series("container_cpu_usage_seconds_total", each, lambda age: (DAY - age) / 2, DAY, 60)
        for each in ({**labels, "container": "app"}, total)
    ]
    memory = [Series("container_memory_working_set_bytes", {**labels, "container": "app"}, lambda _: 64 * MIB, DAY, 60)]
    with RealPrometheus(tmp_path, [*counters, *memory]) as server:
        end = ("--now", NOW.isoformat(), "--history", "20h", "--min-days", "1", "--min-samples", "20")
        outcome = CliRunner().invoke(
            main, ["recommend", "--prometheus", server.url, *end, "--rule", "quantile", "-o", "json"]
        )

    (found,) = containers(outcome)
    assert (found["name"], found["container"], found["recommended"]["cpuRequest"]) == ("db", "app", "500m")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--cpu-query", "sum(used_cores)"), "a series has no label namespace, pod, container"),
        (("--cpu-query", "rate(used_cores"), "Prometheus at http://127.0.0.1"),
        (("--cpu-query", "nothing"), "Prometheus has no such history"),
        (("--step", "0s"), "--step is more than 0"),
        (("--samples", "folder"), "give one of --samples, --prometheus and --policy"),
    ],
)
def test_what_cannot_be_asked_is_told(server, arguments, words):
    """An error that names the cure, without a traceback."""
    outcome = asked(server, *arguments)

    assert outcome.exit_code in (1, 2)
    assert words in outcome.stderr
