"""What became of replacements, and the breaker."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from rebalancer.cluster.pod import Condition, ContainerStatus
from rebalancer.memory.document import OwnerStop, Tripped
from rebalancer.memory.settling import judged, missed, settled, with_moves
from tests import make
from tests.unit.memory.memories import ago, memory, move

WITHIN = timedelta(minutes=5)


def replacement(minutes: float, **fields):
    """A pod of `web` that came so many minutes ago."""
    return make.pod(fields.pop("name", "new"), **{"node": "n2", "age": minutes * 60, **fields})


def after(*moves, pods, **fields):
    """The memory once these pods were looked at."""
    return settled(memory(*moves, **fields), pods, make.NOW, WITHIN)


def crashing(reason):
    return replacement(1, ready=False, containers=(ContainerStatus(waiting=reason),))


@pytest.mark.parametrize(
    ("minutes", "pod", "failed"),
    [
        (2, replacement(1.9), ""),
        (2, crashing("CrashLoopBackOff"), "CrashLoopBackOff"),
        (2, crashing("ImagePullBackOff"), "ImagePullBackOff"),
        (2, replacement(1, ready=False, containers=(ContainerStatus(terminated="OOMKilled"),)), "OOMKilled"),
        (2, crashing("ContainerCreating"), ""),
        (4, replacement(4, ready=False), ""),
        (6, replacement(6, ready=False), "NotReady"),
        (6, replacement(6, ready=False, node=""), "Pending"),
    ],
)
def test_a_replacement_that_fails_stops_its_owner(minutes, pod, failed):
    """For an hour; one that takes its time does not."""
    known = after(move(at=ago(minutes=minutes), source="n1"), pods=[pod])

    assert known.moves[0].failed == failed
    assert [(each.why, each.until) for each in known.stops] == ([(failed, ago(hours=-1))] if failed else [])


def test_each_further_failure_doubles_the_stop():
    """To a day at most; what was long ago is forgotten."""
    stop = OwnerStop(namespace="default", owner="ReplicaSet/web", since=ago(hours=3), until=ago(hours=1), times=2)
    old = replace(stop, until=ago(hours=25))

    for before, hours in ((stop, 4), (old, 1)):
        known = after(move(at=ago(minutes=2)), stops=(before,), pods=[crashing("CrashLoopBackOff")])
        assert known.stops[0].until == ago(hours=-hours)


def test_a_move_learns_where_and_when_its_replacement_was_ready():
    """By the pod's condition; a pod that was there before does not count as a replacement, nor is one of another owner.

    By the API server's clock, which may be half a minute behind, it came before the move.
    """
    times = (("Initialized", ago(minutes=1)), ("Ready", ago(seconds=30)))
    conditions = tuple(Condition(kind, "True", changed=at) for kind, at in times)
    others = replacement(60, name="old"), replacement(1, name="other", owners="db")
    came = replacement(2.4, conditions=conditions)

    (known,) = after(move(at=ago(minutes=2), source="n1"), pods=[*others, came]).moves

    assert (known.landed, known.ready, known.replacement) == ("n2", ago(seconds=30), "uid-default-new")


def test_a_move_is_settled_however_late_the_next_cycle_comes():
    """A CronJob may run once an hour; the pods that others brought since stand for no move."""
    pods = [replacement(59), replacement(2, name="later")]

    (known,) = after(move(at=ago(hours=1), source="n1"), pods=pods).moves

    assert (known.replacement, known.landed, known.ready) == ("uid-default-new", "n2", ago(minutes=59))


@pytest.mark.parametrize(("hours", "ready"), [(22.95, 22.95), (3, 22.98)])
def test_a_restart_hours_later_does_not_make_a_replacement_slow(hours, ready):
    """It was Ready before, by when is not known: so its owner's moves do not cost ten times as much for weeks."""
    conditions = (Condition("Ready", "True", changed=ago(hours=hours)),)
    came = replacement(22.99 * 60, conditions=conditions, started=ago(hours=22.98))

    (known,) = after(move(at=ago(hours=23)), pods=[came]).moves

    assert known.ready == ago(hours=ready)


def test_a_rollout_before_the_next_run_brings_no_replacements():
    """Its pods are where nothing was foretold, perhaps where the move came from, and may crash; the move is unknown."""
    rolled = replacement(1360, node="n1", ready=False, containers=(ContainerStatus(waiting="CrashLoopBackOff"),))

    known = after(move(at=ago(hours=23), source="n1", foretold=("n2",)), pods=[rolled])

    assert (known.moves[0].replacement, known.stops, known.undone) == ("", (), 0)


@pytest.mark.parametrize(
    ("minutes", "ready", "failed"), [(14, True, 1), (16, True, 0), (60, False, 1), (1500, False, 1), (1570, False, 0)]
)
def test_a_replacement_is_watched_for_a_while(minutes, ready, failed):
    """A quarter of an hour where it was Ready, since it may fail later, and else until the next nightly run."""
    at = ago(minutes=minutes)
    seen = move(at=at, replacement="uid-default-new", ready=at if ready else None)

    assert bool(after(seen, pods=[crashing("CrashLoopBackOff")]).moves[0].failed) == failed


def test_what_fails_at_the_same_time_stops_an_owner_once():
    both = [crashing("CrashLoopBackOff"), crashing("ErrImagePull")]
    both[1] = replace(both[1], name="newer", uid="newer")

    known = after(*(move(at=ago(minutes=2), pod=pod) for pod in "ab"), pods=both)

    assert ([bool(each.failed) for each in known.moves], [each.times for each in known.stops]) == ([True, True], [1])


def test_one_replacement_stands_for_one_move():
    known = after(*(move(at=ago(minutes=2), pod=pod) for pod in "ab"), pods=[replacement(1)])

    assert [each.landed for each in known.moves] == ["n2", ""]


def test_a_move_is_undone_if_its_pod_comes_back_or_goes_again():
    back = after(move(at=ago(minutes=2), source="n2"), pods=[replacement(1)])
    again = with_moves(memory(move(at=ago(hours=2), replacement="r")), [move(at=make.NOW, pod="r")])

    assert [(each.moves[0].undone, each.undone) for each in (back, again)] == [(True, 1)] * 2


def failures(count, of, owners=1):
    """So many moves of an hour, the last of which failed."""
    return [
        move(f"w{n % owners}", at=ago(minutes=of - n), failed="CrashLoopBackOff" if n >= of - count else "")
        for n in range(of)
    ]


@pytest.mark.parametrize(
    ("moves", "stops", "hours", "is_open"),
    [
        (failures(3, 20), 1, 1, False),
        (failures(4, 20), 1, 1, True),
        (failures(4, 4), 1, 1, True),
        (failures(3, 3, owners=3), 3, 1, True),
        (failures(3, 3, owners=3), 3, -1, False),
        (failures(3, 3, owners=3), 2, 1, False),
        ([*failures(4, 4), *(move(at=ago(seconds=n)) for n in range(20))], 1, 1, False),
    ],
)
def test_the_breaker_opens_at_three_owners_or_a_fifth_of_the_last_moves(moves, stops, hours, is_open):
    """For an hour; the owners are those that are stopped now."""
    held = tuple(
        OwnerStop(namespace="default", owner=f"ReplicaSet/w{n}", since=ago(hours=2), until=ago(hours=-hours))
        for n in range(stops)
    )

    breaker = judged(memory(*sorted(moves, key=lambda each: each.at), stops=held), make.NOW, WITHIN)

    assert bool(breaker.stopped) == is_open
    assert (breaker.tripped and breaker.tripped.until) == (ago(hours=-1) if is_open else None)


OPEN = Tripped(since=ago(minutes=90), until=ago(minutes=30), why="three owners")


@pytest.mark.parametrize(
    ("breaker", "trial", "stopped", "is_trial", "is_closed"),
    [
        (replace(OPEN, until=ago(minutes=-1)), [], True, False, False),
        (OPEN, [], False, True, False),
        (OPEN, [move(at=ago(minutes=2))], True, False, False),
        (OPEN, [move(at=ago(minutes=2), ready=ago(minutes=1))], False, False, True),
        (OPEN, [move(at=ago(minutes=9), failed="NotReady")], True, False, False),
        (OPEN, [move(at=ago(minutes=9))], True, False, False),  # of an owner that was scaled to 0, for example
    ],
)
def test_after_an_hour_one_move_is_tried(breaker, trial, stopped, is_trial, is_closed):
    """The breaker closes when its replacement is Ready; old failures do not count again."""
    known = memory(*(replace(each, at=ago(hours=2)) for each in failures(4, 4)), *trial, breaker=breaker)

    judgement = judged(known, make.NOW, WITHIN)

    assert (bool(judgement.stopped), judgement.is_trial, judgement.tripped is None) == (stopped, is_trial, is_closed)
    is_over = any(each.at < ago(minutes=5) for each in trial)
    assert bool(judgement.tripped and judgement.tripped.until == ago(hours=-1)) == is_over  # an hour begins anew


def test_a_breaker_that_closed_stays_closed():
    """The failures before it do not open it again in the next cycle."""
    known = memory(
        *(replace(each, at=ago(hours=2)) for each in failures(4, 4)),
        move(at=ago(minutes=2), ready=ago(minutes=1)),
        breaker=OPEN,
    )

    then = judged(known, make.NOW, WITHIN).of(known)

    assert judged(then, make.NOW, WITHIN) == judged(known, make.NOW, WITHIN)
    assert not judged(then, make.NOW, WITHIN).stopped


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ("-" * 19, None),
        ("-" * 5 + "+" * 15, (15, 20)),
        ("-" * 4 + "+" * 16, None),
        ("-" * 30 + "+" * 50, None),
        ("+" * 30 + "-" * 11 + "+" * 39, (39, 50)),
        ("o" * 9 + "-" * 19, None),
    ],
)
def test_a_forecast_that_misses_is_noticed(history, expected):
    """Fewer than four of five of the last 50; fewer than 20 say nothing, nor do those that were not foretold."""
    moves = [
        move(at=ago(minutes=90 - n), foretold=() if hit == "o" else ("n2",), landed="n2" if hit == "+" else "n3")
        for n, hit in enumerate(history)
    ]

    assert missed(memory(*moves), make.NOW) == expected
