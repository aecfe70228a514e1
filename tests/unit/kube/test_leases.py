"""One Lease, read and written, and the record in it of runs that may have left soft taints."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rebalancer.kube.answers import Rejected, Transient
from rebalancer.kube.leases import Lease, Leases
from rebalancer.kube.marks import Mark
from rebalancer.kube.run_marks import RunRecord

KEYS = ("example.com/steer", "example.com/steer-more")
NOW = datetime(2026, 1, 15, 12, tzinfo=UTC)
ONE, TWO = Mark("run-1", KEYS, NOW), Mark("run-2", KEYS, NOW + timedelta(minutes=7))
LEASE = "*/leases/rebalancer"
NO_ZONE = '{"run": "r", "keys": [], "expires": "2026-01-15T12:00"}'
FREE = Lease("one", 60.0, None, None, 0, "")


@pytest.fixture
def leases(client):
    return Leases(client, "kube-system", "rebalancer", 3600.0)


@pytest.fixture
def anew(leases, server):
    """The same, and there is no Lease."""
    server.leases.held.clear()
    return leases


def test_a_write_may_have_less_time_than_the_others(anew, server):
    """Giving back at the end; without time nothing is sent."""
    lease = anew.write(FREE)
    sent = len(server.requests)

    with pytest.raises(Transient, match="no time left"):
        anew.write(lease, 0.0)
    assert len(server.requests) == sent
    assert anew.write(lease).holder == "one"


def test_what_was_written_is_read(anew, server):
    """Once deleted it is not made anew: for the API server, a PUT that names no UID may create a Lease."""
    assert anew.read() is None
    written = anew.write(replace(FREE, transitions=3, acquired=NOW, renewed=NOW + timedelta(microseconds=1)))

    assert (written.holder, written.duration, written.transitions) == ("one", 60.0, 3)
    assert (written.acquired, written.renewed) == (NOW, NOW + timedelta(microseconds=1))
    assert written.version
    assert anew.read() == written
    assert anew.write(replace(written, version="")) is None
    server.leases.held.clear()
    assert anew.write(written) is None
    assert anew.read() is None


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"kind": "Status", "metadata": {"resourceVersion": "1"}},
        {"kind": "Lease", "metadata": {}},
        {"kind": "Lease", "metadata": {"resourceVersion": "1"}, "spec": {"leaseDurationSeconds": 10**400}},
        {"kind": "Lease", "metadata": {"resourceVersion": "1"}, "spec": {"leaseDurationSeconds": 2**31}},
        {"kind": "Lease", "metadata": {"resourceVersion": "1"}, "spec": {"leaseDurationSeconds": -(2**31) - 1}},
        b'{"kind": "Lease", "metadata": {"resourceVersion": "\xff"}}',
        b'{"kind": "Lease", "spec": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    ],
)
def test_an_answer_that_is_not_a_lease_is_not_a_free_one(leases, server, body):
    """A lease without a holder could be taken, and one without a version would overwrite another's."""
    server.fail("GET", LEASE, status=200, body=body)

    with pytest.raises(Rejected, match=r"does not answer .*/leases/rebalancer with a Lease"):
        leases.read()


def test_a_lease_that_was_never_held_has_changed_hands_never(leases, server):
    """What is null was not written; a time without a zone is in UTC."""
    spec = {"holderIdentity": None, "leaseDurationSeconds": None, "leaseTransitions": None}
    spec |= {"renewTime": "2026-01-15T12:00:00"}
    document = {"kind": "Lease", "metadata": {"resourceVersion": "1"}, "spec": spec}
    server.fail("GET", LEASE, status=200, body=document)

    found = leases.read()

    assert (found.holder, found.duration, found.transitions) == ("", 0, 0)
    assert found.renewed == NOW


@pytest.fixture
def record(leases):
    return RunRecord(leases)


@pytest.mark.usefixtures("anew")
def test_runs_are_noted_and_forgotten(record, server):
    """The oldest first; each once, with what was noted last; a run that is not there need not be forgotten."""
    assert record.read() == ()
    record.note(TWO)
    record.note(ONE)
    record.note(TWO)
    assert record.read() == (ONE, TWO)

    record.forget(["run-1", "run-3"])
    assert record.read() == (TWO,)
    assert server.leases.holder() == ""  # of a Lease that was made for it


def test_what_is_as_wanted_is_not_written(record, server):
    """Each write starts anew how long others watch the Lease."""
    record.note_signs(["status=presure"])
    record.note(ONE)
    written = len(server.sent("PUT", LEASE))

    record.note(ONE)
    record.note_signs(["status=presure"])
    record.forget(["run-3"])

    assert len(server.sent("PUT", LEASE)) == written


def test_whoever_holds_the_lease_keeps_it(record, leases):
    """And what else is noted there stays."""
    before = leases.read()

    record.note(ONE)
    record.forget(["run-1"])

    after = leases.read()
    assert (after.holder, after.annotations) == (before.holder, before.annotations)


def test_a_lease_that_others_write_to_is_read_again(record, server, caplog):
    """Its holder renews it; nothing of theirs is lost, and it is not tried for ever."""
    server.fail("PUT", LEASE, status=409, times=3)
    record.note(ONE)
    assert record.read() == (ONE,)

    server.fail("PUT", LEASE, status=409)
    record.note(TWO)
    assert "others write to the lease kube-system/rebalancer all the time" in caplog.text
    assert record.read() == (ONE,)


@pytest.mark.parametrize(
    "text", ["", "{}", "null", "[" * 5000, *(f"[{each}]" for each in (NO_ZONE, '{"run": 7}', "null"))]
)
def test_what_cannot_be_read_names_no_run(record, server, text):
    """And is replaced by what is noted next."""
    server.leases.note("kube-rebalancer/runs", text)
    assert record.read() == ()

    record.note(ONE)
    assert record.read() == (ONE,)


def test_an_entry_that_cannot_be_read_does_not_hide_the_others(record, server):
    """A run that is at work stays known, or its taints would be taken off."""
    server.leases.note("kube-rebalancer/runs", f"[{NO_ZONE},{ONE.text()}]")
    record.note(TWO)

    assert record.read() == (ONE, TWO)


def test_the_record_does_not_grow_for_ever(record):
    for number in range(52):
        record.note(Mark(f"run-{number}", (), NOW))

    assert [each.run for each in record.read()] == [f"run-{number}" for number in range(2, 52)]


def test_labels_and_taints_are_noted_beside_those_of_before(record, server):
    """Where the Lease cannot be had, marking goes on without."""
    record.note_signs(["status=presure"])
    record.note_signs(["a=b"])
    assert record.signs() == {"a=b", "status=presure"}
    for number in range(60):  # rules that were renamed
        record.note_signs([f"a=rule-{number}"])
    record.note_signs(["zone=hot"])
    assert (len(record.signs()), "zone=hot" in record.signs()) == (50, True)

    server.forbid("get", "leases.coordination.k8s.io")
    record.note_signs(["c=d"])
    assert record.signs() == frozenset()
