"""Taking turns by a Lease, against a real HTTP server and in a time that the test moves."""

import re
import threading
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from rebalancer.errors import Unreachable, UsageError
from rebalancer.kube.client import Client
from rebalancer.kube.config import connect
from rebalancer.kube.leases import Lease, Leases
from rebalancer.run import leadership
from rebalancer.run.leadership import GIVEN_BACK, Leadership, Timing
from rebalancer.run.options import LeaseOptions

#: Never renewed in the background within a test.
SLOW = Timing(3600.0, 1800.0, 900.0)
#: Renewed all the time.
EAGER = Timing(3600.0, 1800.0, 0.01)
LEASE = "*/leases/rebalancer"
#: What the last holder has left.
GIVEN = Lease("", 1.0, None, None, 0, "1", {GIVEN_BACK: "before"})


def wall_of(time):
    """The wall clock of a time that the test moves."""
    return lambda: datetime(2026, 1, 15, 12, tzinfo=UTC) + timedelta(seconds=time.now - 1000.0)


@pytest.fixture
def alone(time):
    """Makes one participant in a Lease, and gives back what it holds in the end."""
    made = []

    def make(store, timing=SLOW, **settings):
        made.append(Leadership(store, timing, "one", time.clock, wall_of(time), **settings))
        return made[-1]

    yield make
    for part in made:
        part.release()


@pytest.fixture
def holder(alone):
    """Makes one that holds a Lease, which was given back before."""

    def make(timing=SLOW, *, loses=False, **settings):
        one = alone(InMemory(GIVEN), timing, **settings)
        one.leases.loses = loses
        one.acquire(0.0)
        return one

    return make


@pytest.fixture
def leases(server, tmp_path):
    return Leases(Client(connect(str(server.kubeconfig(tmp_path)), None)), "kube-system", "rebalancer", 10.0)


def test_a_server_that_does_not_answer_does_not_hold_up_the_end(alone, leases, server, caplog, monkeypatch):
    """Giving back is given up after some seconds, and said; the Lease is free after its duration."""
    monkeypatch.setattr("rebalancer.run.leadership._GIVE_BACK_SECONDS", 0.2)
    one = alone(leases)
    one.take()
    answer = server.stall("PUT", LEASE)

    one.release()

    assert one.permit()
    assert server.leases.holder() == "one"
    assert "was not given back, and is free after its duration: " in caplog.text
    answer.set()


@pytest.mark.parametrize(
    ("duration", "ago", "seconds"),
    [
        pytest.param(100.0, 0.0, 100.0, id="for its duration"),
        pytest.param(100.0, 161.0, 2.0, id="for one retry, where it was over long ago"),
        pytest.param(100.0, 150.0, 10.5, id="where that is longer ago than clocks differ"),
        pytest.param(2.0**31 - 1, 3600.0, 15.0, id="for our duration, where its own is 68 years"),
        pytest.param(2.0**31 - 1, 0.0, 15.0, id="renewed just now, for 68 years"),
        pytest.param(60.0, -3.6e6, 15.0, id="where its renewal is still to come"),
        pytest.param(60.0, None, 15.0, id="where nothing says when it was renewed"),
    ],
)
def test_a_lease_of_another_is_watched(duration, ago, seconds, time, alone):
    """From when it was first seen.  What a killed run left yesterday keeps nobody longer than a renewal takes.

    What nobody can have written was edited, and is watched for our own duration.
    """
    renewed = None if ago is None else wall_of(time)() - timedelta(seconds=ago)
    one = alone(InMemory(Lease("other", duration, renewed, None, 0, "1")), Timing(15.0, 10.0, 2.0))

    assert not one.take()
    time.now += seconds - 0.5
    assert not one.take()
    time.now += 0.5
    assert one.take()


def test_it_is_renewed_in_the_background(time, holder):
    """Which lengthens the turn; an answer that was lost is not taken for a theft."""
    one = holder(EAGER, loses=True)
    for _ in range(2):
        time.now += 1700.0
        seen = one.leases.writes
        while one.leases.writes < seen + 3:
            assert one._renewing.is_alive()

    assert (one.permit(), one.leases.lease.holder) == ("", "one")


@pytest.mark.parametrize(
    "missing_or_foreign",
    [
        None,
        Lease("", 1.0, None, None, 0, "1"),
        Lease("one", 1.0, None, None, 0, "1"),
        Lease("gone", 0.0, datetime(2026, 1, 15, 12, tzinfo=UTC), None, 0, "1"),
    ],
    ids=["deleted", "no holder", "our own name", "a duration of nothing"],
)
def test_who_takes_a_lease_that_was_not_given_back_waits_for_whoever_may_hold_it(missing_or_foreign, time, alone):
    """Somebody may have deleted or edited it while its holder evicts; the holder notices within 7 s."""
    one = alone(InMemory(missing_or_foreign))
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        assert one.permit()
        time.now += seconds

    assert one.acquire(0.0, sleep)

    assert slept == [7.0]
    assert one.permit() == ""


def test_a_holder_that_cannot_renew_waits_while_it_holds_the_lease(time, holder):
    """Until it can, or its time is over; a signal ends the wait."""
    waited: list[float] = []

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        time.now += seconds
        one.leases.is_silent = len(waited) != 3
        return False

    one, began = holder(Timing(60.0, 30.0, 20.0), wait=wait), time.now
    one.leases.is_silent = True
    time.now += 7.0

    assert (one.permit(), waited) == ("", [2.0] * 3)
    one.leases.is_silent = True
    time.now += 7.0
    assert one.permit() == "the lease kube-system/rebalancer is not held any more"
    assert time.now - began >= 30.0


def test_threads_that_write_at_once_renew_it_once(time, holder):
    """With --max-parallel: else each of them would conflict with all others."""
    one, both = holder(), threading.Barrier(2)

    def meet():
        with suppress(threading.BrokenBarrierError):
            both.wait(0.2)

    one.leases.written, writes, said = meet, one.leases.writes, []
    time.now += 2.0
    threads = [threading.Thread(target=lambda: said.append(one.permit())) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)

    assert (said, one.leases.writes) == (["", ""], writes + 1)


@pytest.mark.parametrize(("change", "why"), [(None, "it was deleted"), ("thief", "thief holds it")])
def test_a_holder_renews_every_two_seconds_while_it_writes(change, why, time, holder, monkeypatch):
    """Not more often, since each is a request; a Lease that is gone or of another ends its writes."""
    one, held = holder(), []
    store = one.leases
    monkeypatch.setattr("rebalancer.run.leadership._LOG.warning", lambda *_: held.append(one.is_held()))
    store.lease = change and replace(store.lease, holder=change, version="other")
    writes = store.writes

    time.now += 1.9
    assert (one.permit(), store.writes) == ("", writes)
    time.now += 0.1
    assert one.permit() == f"the lease kube-system/rebalancer is not held any more: {why}"
    assert (store.writes, one.holder, held) == (writes + 1, change or "", [False])
    one._renew()  # as the other thread does, which has waited meanwhile: it knows no better why
    assert one.permit().endswith(why)

    one.release()
    assert (store.lease.holder if change else store.lease) == change


def test_what_a_slow_answer_says_counts_from_the_question(time, alone):
    """The Lease may have changed while the answer was on its way."""
    store = InMemory(GIVEN)
    store.takes = lambda: setattr(time, "now", time.now + 5.0)
    one = alone(store, Timing(60.0, 30.0, 20.0))
    began = time.now + 5.0  # after the first reading
    one.take()
    store.takes = lambda: None

    time.now = began + 29.9
    assert one.is_held()
    time.now = began + 30.0
    assert not one.is_held()


def test_a_slow_renewal_shows_who_held_it_when_that_was_asked(time, holder):
    """So writes end seven seconds after the question, not after its answer."""
    one, asked = holder(), time.now + 2.0
    one.leases.takes = lambda: setattr(time, "now", asked + 5.0)
    time.now = asked
    assert one.permit() == ""
    one.leases.is_silent = True

    time.now = asked + 6.9
    assert one.permit() == ""
    time.now = asked + 7.0
    assert "could not be seen" in one.permit()


@pytest.mark.parametrize("transitions", [0, 2**31 - 1])
def test_what_else_a_lease_says_stays(transitions, alone):
    """Who holds it is counted as far as the server counts: one more would be refused, and no run would evict again."""
    store = InMemory(replace(GIVEN, transitions=transitions, annotations={**GIVEN.annotations, "team": "blue"}))
    one = alone(store)

    one.take()
    assert (store.lease.transitions, store.lease.annotations) == (min(transitions + 1, 2**31 - 1), {"team": "blue"})
    one.release()

    assert store.lease.annotations == {GIVEN_BACK: "one", "team": "blue"}


def test_giving_back_does_not_wait_for_a_renewal_under_way(alone, leases, server, caplog):
    """Whichever comes first: the next run need not wait for the Lease's duration."""
    arrived = threading.Event()
    one = alone(leases, EAGER)
    one.take()
    server.on("PUT", LEASE, lambda _: arrived.set(), times=1)
    answer = server.stall("PUT", LEASE, times=1)
    assert arrived.wait(60)

    one.release()

    assert server.leases.holder() == ""
    assert not answer.is_set()
    answer.set()
    one._renewing.join(60)
    assert server.leases.holder() == ""
    assert "not given back" not in caplog.text


def test_a_renewal_whose_answer_names_another_holder_is_none(time, holder):
    """Whoever is between us and the API server may have carried out something else."""
    one = holder()

    def steal():
        one.leases.lease = replace(one.leases.lease, holder="thief")
        return one.leases.lease

    one.leases.written = steal
    time.now += 2.0

    assert one.permit() == "the lease kube-system/rebalancer is not held any more: thief holds it"


def test_a_renewal_that_is_answered_after_the_end_holds_nothing(time, holder):
    one = holder()
    one.leases.written = one.release

    time.now += 2.0

    assert one.permit() == "the lease kube-system/rebalancer is not held any more"
    assert one.leases.lease.holder == ""


def test_what_was_begun_and_not_answered_is_given_back_too(alone):
    """A signal may have cut off the request that took the Lease."""
    store = InMemory(GIVEN)

    def cut():
        raise KeyboardInterrupt

    store.written = cut
    one = alone(store)
    with pytest.raises(KeyboardInterrupt):
        one.take()
    assert store.lease.holder == "one"
    store.written = lambda: None

    one.release()

    assert store.lease.holder == ""


class InMemory:
    namespace, name = "kube-system", "rebalancer"

    def __init__(self, lease: Lease | None = None) -> None:
        self.lease = lease
        self.writes = 0
        self.is_silent = self.loses = False  # any write, which it does not do; now and then one that it does
        self.takes = self.written = lambda: None

    def read(self, seconds=None):
        self.takes()
        return self.lease

    def write(self, lease, seconds=None):
        self.writes += 1
        if self.is_silent:
            raise Unreachable("no answer")
        if lease.version != (self.lease.version if self.lease else ""):
            return None
        self.lease = answer = replace(lease, version=str(100 + self.writes))
        answer = self.written() or answer
        self.takes()
        if self.loses and self.writes % 3 == 2:
            raise Unreachable("no answer")
        return answer


@pytest.mark.parametrize("timing", [(15.0, 15.0, 2.0), (15.0, 2.0, 2.0), (15.0, 10.0, 0.0), (4000.0, 107.0, 26.0)])
def test_durations_that_do_not_go_together(timing):
    with pytest.raises(UsageError, match="--leader-elect-"):
        Timing(*timing)


GUIDE = Path(__file__).parents[3] / "docs/running.md"
FLAGS = ("lease-duration", "renew-deadline", "retry-period")


def promised(column):
    rows = [re.search(rf"`--leader-elect-{flag}` \| (\d+) s \| (\d+) s", GUIDE.read_text()) for flag in FLAGS]
    return Timing(*(float(row.group(column)) for row in rows))


CLIENT = SimpleNamespace(ending=threading.Event())
candidate = partial(leadership.candidate, CLIENT)


def test_a_cycle_and_a_leader_have_the_durations_of_the_guide(monkeypatch):
    """A CronJob's next run need not wait long for one that was killed; a leader's are the descheduler's."""
    monkeypatch.setattr(leadership, "Leases", lambda *_: None)
    assert candidate(LeaseOptions(), leadership.ONE_CYCLE).timing == promised(1)
    assert candidate(LeaseOptions(), leadership.LEADER).timing == promised(2)
    assert candidate(LeaseOptions(retry_period=3.0), leadership.ONE_CYCLE).timing == Timing(137.0, 107.0, 3.0)


@pytest.mark.parametrize(("deadline", "seconds"), [(107.0, 5.0), (10.0, 5.0), (8.0, 4.0)])
def test_a_request_leaves_time_for_another_try_before_the_deadline(monkeypatch, deadline, seconds):
    """And takes no longer than a run waits that takes a Lease which was not given back."""
    asked = []
    monkeypatch.setattr(leadership, "Leases", lambda *given: asked.append(given))

    candidate(LeaseOptions(lease_duration=200.0, renew_deadline=deadline, retry_period=2.0), leadership.ONE_CYCLE)

    assert asked == [(CLIENT, "kube-system", "rebalancer", seconds)]
