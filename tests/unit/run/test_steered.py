"""What a steered run notes of itself where a kubelet cannot write, and when."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from rebalancer.cluster.cluster import unmeasured
from rebalancer.kube.marks import Mark
from rebalancer.kube.tries import Halt, always
from rebalancer.policy.moving import AVOID_KEY, Steering
from rebalancer.run import steered
from rebalancer.run.live import LiveSink
from rebalancer.run.options import LeaseOptions, Options
from rebalancer.run.work import work_maker
from tests import make
from tests.unit.policy.reading import LIFE_TIME, RUN_LIFE_TIME, load, profile
from tests.unit.run.waves import move, wave


@pytest.fixture
def noted(cluster):
    return steered.record_of(cluster, LeaseOptions()).read


def steering(cluster, halt):
    before = steered.CleanUp(steered.record_of(cluster, LeaseOptions()), always)
    watch = LiveSink(cluster, None, halt)
    watch.work = SimpleNamespace(policy=SimpleNamespace(steering=Steering()))
    return steered.steering(watch, make.snapshot((), ()), before)


def test_a_run_is_on_record_before_its_first_taint_and_no_longer_than_after_its_last(cluster, server, time, noted):
    """With an expiry two minutes after its deadline: for its last requests, and for clocks that differ."""
    halt, began, at_patch = Halt(300, time.clock), datetime.now(UTC), []
    server.on("PATCH", "*", lambda _: at_patch.append(noted()))

    with steering(cluster, halt) as steer:
        assert noted() == ()
        steer.begin(wave(move("web-1")))

    ended = datetime.now(UTC)
    ((mark,), (still,)) = at_patch
    assert mark == still
    assert mark.keys == ("kube-rebalancer/avoid", "kube-rebalancer/avoid-more")
    lifetime = timedelta(seconds=420)
    assert began - timedelta(seconds=1) <= mark.expires - lifetime <= ended
    assert noted() == ()


def test_what_may_come_late_stays_on_record_and_is_told(cluster, time, noted, monkeypatch):
    """The next run finds it even if the keys have changed by then."""
    monkeypatch.setattr("rebalancer.kube.run_marks._DOUBT_SECONDS", 0.0)
    with steering(cluster, Halt(300, time.clock)) as steer:
        steer.marks._doubt("n1")
        steer.begin(wave(move("web-1"), n2=1))

    assert [mark.run for mark in noted()] == [steer.marks.mark.run]
    assert list(steer.told()) == [
        "requests had no answer, and may still set soft taints (`rebalancer unmark` takes them off): n1"
    ]


@pytest.mark.parametrize(
    ("noted", "expires", "is_over"),
    [
        ((), 60, True),
        ((60,), 10, False),
        ((-60,), 3600, True),
        (None, 60, False),
        (None, -60, True),
        (None, 25 * 3600, True),
    ],
    ids=["not on record", "on record", "over by the record", "no record", "over", "beyond belief"],
)
def test_whether_a_run_may_be_at_work_is_said_by_the_record(noted, expires, is_over):
    """What a node's annotation says only counts where there is no record, and for a day at most."""
    now = datetime.now(UTC)
    marks = None if noted is None else [Mark("run-1", (), now + timedelta(seconds=each)) for each in noted]

    assert steered.is_over(marks, always)(Mark("run-1", (), now + timedelta(seconds=expires))) == is_over
    assert steered.is_over(marks, lambda: "")(Mark("run-1", (), now + timedelta(seconds=expires)))


def test_nothing_is_cleared_up_once_the_permit_has_ended(cluster, server):
    server.node("n1")["spec"]["taints"] = [{"key": AVOID_KEY, "value": "run-0", "effect": "PreferNoSchedule"}]
    snapshot = make.snapshot([make.node("n1", taints=[f"{AVOID_KEY}:PreferNoSchedule"])], ())
    work = SimpleNamespace(policy=SimpleNamespace(steering=None))

    (told,) = steered.clear_up(cluster, LeaseOptions(), work, snapshot, lambda: "the lease is lost").told

    assert told.startswith("soft taints stay on nodes (`rebalancer unmark` takes them off): node n1: not asked for")
    assert "the lease is lost" in told
    assert server.sent("PATCH", "*") == []


def test_what_an_earlier_run_has_left_is_not_seen_whatever_the_key_is_now():
    """It is taken off after the cluster was looked at."""
    text = profile(LIFE_TIME, RUN_LIFE_TIME) + "steering: {key: example.com/later}"
    work = work_maker(Options(policy="given"))(load(text, strict=True))
    soft = [f"{key}:PreferNoSchedule" for key in (AVOID_KEY, f"{AVOID_KEY}-more", "example.com/later", "other")]

    found = work.cluster(make.snapshot([make.node("n1", taints=soft)], ()), unmeasured)

    assert [each.key for each in found.snapshot.nodes[0].taints] == ["other"]
