"""Taking turns by a Lease, against a real HTTP server and on clocks that the test moves."""

import threading
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalancer.errors import Forbidden, UsageError
from rebalancer.kube.client import Client
from rebalancer.kube.config import connect
from rebalancer.kube.leases import Lease, Leases
from rebalancer.run.leadership import Leadership
from rebalancer.run.lease_timing import Timing
from tests.fake_api_server import FakeApiServer

#: Never renewed in the background within a test.
SLOW = Timing(3600.0, 1800.0, 900.0)
LEASE = "*/leases/rebalancer"


@dataclass
class Clocks:
    """Seconds since boot and the time of day, which go on together."""

    seconds: float = 1000.0
    start: datetime = field(default_factory=lambda: datetime(2026, 1, 15, 12, tzinfo=UTC))

    def boot(self) -> float:
        return self.seconds

    def wall(self) -> datetime:
        return self.start + timedelta(seconds=self.seconds - 1000.0)


@pytest.fixture
def server():
    with FakeApiServer() as running:
        yield running


@pytest.fixture
def clocks():
    return Clocks()


@pytest.fixture
def join(server, tmp_path, clocks):
    """Makes participants; what they hold is given back in the end."""
    made = []

    def make(identity, timing=SLOW, clocks=clocks, **settings):
        leases = Leases(Client(connect(str(server.kubeconfig(tmp_path)), None)), "kube-system", "rebalancer", 10.0)
        part = Leadership(leases, timing, identity, clocks.boot, clocks.wall, **settings)
        made.append(part)
        return part

    yield make
    for part in made:
        part.release()


def test_the_first_one_holds_it_and_others_learn_who(join, server):
    """Nobody else may act, and everybody knows who does."""
    one, two = join("one"), join("two")

    assert one.take()
    assert not two.take()
    assert (one.permit(), two.holder) == ("", "one")
    assert two.permit() == "the lease kube-system/rebalancer is not held any more"
    assert server.leases.holder() == "one"


def test_what_is_given_back_is_free_at_once(join, server):
    """A clean end keeps nobody waiting."""
    one, two = join("one"), join("two")
    one.take()

    one.release()

    assert one.permit()
    assert server.leases.holder() == ""
    assert two.take()


def test_a_server_that_does_not_answer_does_not_hold_up_the_end(join, server, caplog):
    """Giving back is given up after some seconds, and said; the Lease is free after its duration."""
    one = join("one", give_back_seconds=0.2)
    one.take()
    answer = server.stall("PUT", LEASE)

    one.release()

    assert one.permit()
    assert server.leases.holder() == "one"
    assert "was not given back, and is free after its duration: " in caplog.text
    answer.set()


def test_a_renewal_under_way_does_not_hold_up_the_end_either(join, server):
    """And brings back nothing when its answer comes late."""
    arrived = threading.Event()
    one = join("one", Timing(3600.0, 1800.0, 0.01), give_back_seconds=0.2)
    one.take()
    server.on("PUT", LEASE, lambda _: arrived.set())
    answer = server.stall("PUT", LEASE)
    assert arrived.wait(60)

    one.release()
    assert not answer.is_set()
    answer.set()
    for renewing in [each for each in threading.enumerate() if each.name == "lease"]:
        renewing.join(60)

    assert one.permit()


def test_a_holder_that_is_gone_is_waited_for_until_its_duration_is_over(join, clocks):
    """Counted from when the last renewal was seen, not from what a foreign clock says."""
    one, two = join("one"), join("two")
    one.take()
    assert not two.take()

    clocks.seconds += SLOW.duration - 1
    assert not two.take()
    clocks.seconds += 1

    assert two.take()
    assert two.holder == "two"


def test_a_holder_stops_before_others_may_begin(join, clocks):
    """At its renew deadline, although nobody has taken the Lease yet."""
    one, two = join("one"), join("two")
    one.take()
    two.take()

    clocks.seconds += SLOW.deadline

    assert not one.is_held()
    assert not two.take()


def test_a_lease_that_was_over_long_ago_is_not_watched_for_its_whole_duration(join, clocks):
    """What a killed run left yesterday keeps nobody for longer than one renewal would take to show."""
    join("one").take()
    clocks.seconds += SLOW.duration + 61
    late = join("late", replace(SLOW, retry=10.0))

    assert not late.take()
    clocks.seconds += 10

    assert late.take()


def test_a_lease_that_is_just_over_is_watched_for_its_whole_duration(join, clocks):
    """Its holder's wall clock may be a minute late, so that it holds the Lease still."""
    join("one").take()
    clocks.seconds += SLOW.duration + 49
    late = join("late", replace(SLOW, retry=10.0))

    assert not late.take()
    clocks.seconds += 10

    assert not late.take()


def test_without_a_permission_it_says_which(join, server):
    """For the warning of a run that goes on without turns."""
    server.leases.held.clear()
    server.forbid("create", "leases.coordination.k8s.io")

    with pytest.raises(Forbidden, match=r"no permission to create leases\.coordination\.k8s\.io"):
        join("one").take()


def test_a_deleted_or_stolen_lease_is_lost(join, server):
    """The renewal notices, and not one more eviction is permitted."""
    one = join("one", Timing(3600.0, 1800.0, 0.01))
    one.take()

    key = ("kube-system", "rebalancer")
    with server.leases.lock:  # not in the middle of a renewal
        server.leases.held[key] = {
            **server.leases.held[key],
            "metadata": {"resourceVersion": "other"},
            "spec": {"holderIdentity": "thief", "leaseDurationSeconds": 3600},
        }

    one._renewing.join(120)
    assert one.permit()
    assert server.leases.holder() == "thief"


def test_a_renewal_whose_answer_was_lost_is_not_taken_for_a_theft(join, server):
    """The version is another one, the holder is the same."""
    one = join("one", Timing(3600.0, 1800.0, 0.01))
    one.take()
    server.reset("PUT", "*/leases/*", processed=True)
    seen = len(server.sent("PUT", "*"))
    while len(server.sent("PUT", "*")) < seen + 4:
        assert one.is_held()

    assert one.permit() == ""
    assert server.leases.holder() == "one"


FORGED = st.builds(
    lambda holder, duration: Lease(holder, duration, None, None, 0, ""),
    st.sampled_from(["", "somebody", "part-0", "part-1", "part-2"]),
    st.sampled_from([0.0, 15.0, 137.0, 3600.0]),
)


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(0.0, 150.0), st.none() | st.just("gone") | FORGED), max_size=20))
@settings(max_examples=200)
def test_two_may_never_write_at_once(steps):
    """Whoever tries when, however long a process is stopped in between, and whatever is done to the Lease."""
    store, clocks = InMemory(), Clocks()
    parts = [Leadership(store, Timing(137.0, 107.0, 26.0), f"part-{n}", clocks.boot, clocks.wall) for n in range(3)]
    try:
        for number, seconds, change in steps:
            parts[number].take()
            store.change(change)
            for passed in (0.0, min(seconds, 1.0), seconds):
                clocks.seconds += passed
                assert sum(not part.permit() for part in parts) <= 1
    finally:
        for part in parts:
            part.release()


def test_a_lease_that_is_deleted_ends_the_turn_within_two_seconds(join, server, clocks):
    """Long before the next renewal; whoever makes it anew waits until the other one must have noticed."""
    one, two = join("one"), join("two", give_back_seconds=1.0)
    one.take()
    assert one.permit() == ""
    server.leases.held.clear()
    assert two.take()

    assert (one.permit(), two.permit()) == ("", "the lease kube-system/rebalancer was taken before its time")
    clocks.seconds += 2.0
    assert one.permit() == "the lease kube-system/rebalancer is not held any more"
    waits = []
    two.settle(waits.append)
    assert waits == [10.0]
    clocks.seconds += 10.0
    assert two.permit() == ""


def test_a_lease_that_cannot_be_looked_at_ends_the_turn(join, server, clocks):
    """After the time that another process waits which takes it before its time."""
    one = join("one")
    one.take()
    server.fail("GET", LEASE, status=403, times=None)
    clocks.seconds += 11.0
    assert one.permit() == ""
    clocks.seconds += 1.0

    assert one.permit() == "the lease kube-system/rebalancer could not be looked at for 12 s"


@pytest.mark.parametrize("spec", [{"leaseTransitions": 2**31 - 1}, {"leaseDurationSeconds": 2**31 - 1}])
def test_the_largest_numbers_do_not_stop_all_runs(join, server, clocks, spec):
    """No write can go beyond them, and nobody waits for 68 years."""
    server.leases.give("rebalancer", holder="somebody", duration=15, **spec)
    one = join("one")
    assert not one.take()
    clocks.seconds += 3600.0

    assert one.take()
    assert server.leases.holder() == "one"


def test_a_turn_that_ends_during_a_renewal_is_given_back(join, server):
    """The version that the renewal made is the one that is given back."""
    one = join("one", Timing(3600.0, 1800.0, 0.01))
    release = server.stall("PUT", LEASE, when=lambda request: len(server.sent("PUT", LEASE)) > 1)
    one.take()
    while len(server.sent("PUT", LEASE)) < 2:
        assert one.is_held()
    threading.Timer(0.05, release.set).start()

    one.release()

    assert server.leases.holder() == ""


class InMemory:
    """A Lease without a server, for many tries a second."""

    namespace, name, seconds = "kube-system", "rebalancer", 10.0

    def __init__(self) -> None:
        self.lease: Lease | None = None
        self._version = 0

    def change(self, how):
        """Do to the Lease what people do: nothing, delete it, write something else."""
        if how == "gone":
            self.lease = None
        elif how is not None and self.lease is not None:
            self._store(how)

    def read(self, seconds=None):
        return self.lease

    def create(self, lease):
        return self._store(lease) if self.lease is None else None

    def update(self, lease, seconds=None):
        return self._store(lease) if self.lease and self.lease.version == lease.version else None

    def _store(self, lease):
        self._version += 1
        self.lease = replace(lease, version=str(self._version))
        return self.lease


@pytest.mark.parametrize("timing", [(15.0, 15.0, 2.0), (15.0, 2.0, 2.0), (15.0, 10.0, 0.0), (15.0, 107.0, 26.0)])
def test_durations_that_do_not_go_together(timing):
    """Bad usage with the flags' names, where the descheduler panics."""
    with pytest.raises(UsageError, match="--leader-elect-"):
        Timing(*timing)
