"""Two weeks in a real Prometheus: what a person reads, and what is asked.

web: two replicas of unlike load, daily peaks, a rollout after a week, and a start-up that takes most.
api: quiet, with a burst on three days.  db: memory that grows, a gap of six hours and a restart.  agent: next to
nothing.  young: began five days ago.
"""

from datetime import timedelta

import pytest

from tests.functional.program import Program
from tests.functional.recommending import JSON, RESOURCES, pod
from tests.make import NOW
from tests.real_prometheus import RealPrometheus, Series, needed

DAYS, STEP, DAY, MEBI = 14, 300, 86_400, 1 << 20
BEGIN = -DAYS * DAY
ROLLOUT = -7 * DAY + 3600
RESTART = -9 * DAY + 300
OLD, NEW = ("web-5d8f7b9c64-x2x7k", "web-5d8f7b9c64-b4b4b"), ("web-7f6d5c4b22-k4k4k", "web-7f6d5c4b22-z9z9z")

pytestmark = needed


def hour(at):
    return (NOW + timedelta(seconds=at)).hour


def day(at):
    return (NOW + timedelta(seconds=at)).date().toordinal()


def web(heavy):
    def used(at):
        """A wave with its top from 10 to 15 h, a little more each day; the first five minutes take two cores."""
        if ROLLOUT <= at < ROLLOUT + 300:
            return 2000, 300
        top = 10 <= hour(at) < 16
        return (400 if heavy else 150) // (1 if top else 4) + 2 * (day(at) % 7), 300 + (40 if top else 0)

    return used


def api(at):
    burst = day(at) % 5 == 0 and hour(at) == 11
    return (1000 if burst else 100 if 8 <= hour(at) < 18 else 20), 128


def db(at):
    """Six hours are not known; a restart has five minutes of silence, then much CPU, and memory is low again."""
    if -4 * DAY <= at < -4 * DAY + 6 * 3600 or RESTART - 300 <= at < RESTART:
        return None
    if RESTART <= at < RESTART + 300:
        return 1800, 1024
    grown = (at - BEGIN if at < -9 * DAY else at + 9 * DAY) / DAY
    return 250 + 50 * (10 <= hour(at) < 16), round(1024 + 40 * grown)


def agent(_at):
    return 3, 20


PODS = {
    **{name: (web(heavy=not number), BEGIN, ROLLOUT) for number, name in enumerate(OLD)},
    **{name: (web(heavy=not number), ROLLOUT, 1) for number, name in enumerate(NEW)},
    "api-6b9c8d7f55-q2q2q": (api, BEGIN, 1),
    "db-0": (db, BEGIN, 1),
    "agent-x2x7k": (agent, BEGIN, 1),
    "young-6b9c8d7f55-m5m5m": (agent, -5 * DAY, 1),
}


def past():
    for name, (used, begin, end) in PODS.items():
        labels = {"namespace": "shop", "pod": name, "container": "app"}
        for metric, column, share in (("used_cores", 0, 1000), ("used_bytes", 1, 1 / MEBI)):

            def value(age, used=used, begin=begin, end=end, column=column, share=share):
                found = used(-age) if begin <= -age < end else None
                return None if found is None else found[column] / share

            yield Series(metric, labels, value, DAYS * DAY, STEP)
    database, began = {"namespace": "shop", "pod": "db-0", "container": "app"}, NOW.timestamp() + RESTART
    started = "container_start_time_seconds"
    yield Series(started, database, lambda age: began - 20 * DAY * (-age < RESTART), DAYS * DAY, 3600)
    for name in (*OLD, *NEW):
        owner = {"owner_is_controller": "true", "owner_kind": "ReplicaSet", "owner_name": name.rsplit("-", 1)[0]}
        yield Series("kube_pod_owner", {"namespace": "shop", "pod": name, **owner}, lambda _: 1, DAYS * DAY, 6 * 3600)
    for name in {name.rsplit("-", 1)[0] for name in (*OLD, *NEW)}:
        made = {"namespace": "shop", "replicaset": name, "owner_kind": "Deployment", "owner_name": "web"}
        yield Series("kube_replicaset_owner", made, lambda _: 1, DAYS * DAY, 6 * 3600)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    # Else a sample counts a second time after five minutes; and it refuses larger answers, so pieces are halved.
    ends = ("--query.lookback-delta=299s", "--query.max-samples=500")
    with RealPrometheus(tmp_path_factory.mktemp("two-weeks"), list(past()), options=ends) as running:
        yield running


@pytest.fixture
def asked(tmp_path):
    """Ask a server about the past until now."""

    def ask(server, *more):
        wide = Program(tmp_path, {"COLUMNS": "200"})
        return wide("recommend", "--prometheus", server.url, "--now", NOW.isoformat(), *more)

    return ask


QUERIES = ("--cpu-query", "used_cores", "--memory-query", "used_bytes")


#: db: 300m each day, and 1800m as it starts on one of fifteen: 400m.
#: web: 406m at the top of a usual day, and 2000m on that of the rollout, of fifteen: 513m; 75 % of 407m is 305m.
#: api: twelve days of 100m and three of 1000m make 280m.  db: 1384Mi, the highest, and 15 % are 1592Mi.
TABLE = {
    "DaemonSet/agent": "app 10m 10m 32Mi 32Mi low 75 % of the mean of the days' peaks",
    "Deployment/api": "app 210m 280m 96Mi 148Mi low 75 % of the mean of the days' peaks; burst: 1000m on 3 of 15 days",
    "Deployment/web": "app 305m 513m 255Mi 391Mi high 75 % of the mean of the days' peaks",
    "Deployment/young": "app - - - - none too little history: 6 days with samples in peak windows and 1441 samples; "
    "needed are 14 and 100",
    "StatefulSet/db": "app 225m 400m 893Mi 1592Mi low 75 % of the mean of the days' peaks",
}


def test_what_a_person_reads(server, asked):
    """The peak hours are those of the wave; a start-up raises limits alone; bursts and short histories are told.

    Where kube-state-metrics tells the owner of pods that are gone, confidence is high; a name alone is a guess.
    """
    outcome = asked(server, *QUERIES)

    assert (outcome.exit_code, "missing" in outcome.stderr) == (0, False)
    assert (
        "peak hours found by cpu: 10:00-11:00, 11:00-12:00, 12:00-13:00, 13:00-14:00, 14:00-15:00, 15" in outcome.stderr
    )
    lines = [line.split() for line in outcome.stdout.splitlines()[1:] if line]
    assert {line[1]: " ".join(line[2:]) for line in lines} == TABLE


def test_default_queries_are_those_of_the_kubelet_and_of_kube_state_metrics(tmp_path, asked):
    """Half a core all the time; a pod that is gone was killed; on four days 40 % of two hours' periods are throttled.

    Other series do not count.
    """
    labels, gone = ({"namespace": "shop", "pod": f"web-{n}", "container": "app"} for n in (0, 1))

    def throttled(age):
        """Of two periods a second 40 % from hour 10 to hour 12 of each day; a counter, so it only grows."""
        day, second = divmod(4 * DAY - age, DAY)
        return 0.8 * (day * 7200 + min(max(second - 36_000, 0), 7200))

    cpu = "container_cpu_usage_seconds_total"
    values = (
        *((cpu, each, lambda age: (4 * DAY - age) / 2) for each in (labels, {**labels, "container": ""})),
        ("container_memory_working_set_bytes", labels, lambda _: 64 * MEBI),
        ("container_cpu_cfs_periods_total", labels, lambda age: (4 * DAY - age) * 2.0),
        ("container_cpu_cfs_throttled_periods_total", labels, throttled),
        (
            "kube_pod_container_status_last_terminated_reason",
            {**gone, "reason": "OOMKilled"},
            lambda age: 1.0 if 2 * DAY < age < 2 * DAY + 3600 else None,
        ),
    )
    cluster = Program(tmp_path).cluster(pod("web", resources=RESOURCES))
    with RealPrometheus(tmp_path, [Series(*each, 4 * DAY, 60) for each in values]) as server:
        few = ("--history", "96h", "--step", "30m", "--min-days", 2, "--min-samples", 20, "--snapshot", cluster, *JSON)
        (found,) = asked(server, *few).report["containers"]

    killed, squeezed = found["remarks"]
    assert killed == "OOM killed in 1 pod: memory raised to 615Mi"
    assert squeezed == "throttled in 40 % of its cpu periods on 4 days: its limit of cpu raised to 700m"
    assert (found["recommended"]["cpuRequest"], found["recommended"]["cpuLimit"]) == ("525m", "700m")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--cpu-query", "sum(used_cores)"), "a series has no label namespace, pod, container"),
        (("--cpu-query", "rate(used_cores"), "Prometheus at http://127.0.0.1"),
        (("--cpu-query", "nothing"), "Prometheus has no such history"),
        (("--step", "0s"), "--step is more than 0"),
        (("--now", "2026-01-15T12:00:00"), "--now '2026-01-15T12:00:00' is not an RFC 3339 time"),
    ],
)
def test_what_cannot_be_asked_is_told(server, asked, arguments, words):
    outcome = asked(server, *QUERIES, *arguments)

    assert outcome.exit_code in (1, 2)
    assert words in outcome.stderr
