"""The record of runs that may have left soft taints, in the Lease."""

from datetime import UTC, datetime, timedelta

import pytest

from rebalancer.kube.leases import Leases
from rebalancer.kube.marks import Mark
from rebalancer.kube.run_marks import RunRecord

KEYS = ("example.com/steer", "example.com/steer-more")
NOW = datetime(2026, 1, 15, 12, tzinfo=UTC)
ONE, TWO = Mark("run-1", KEYS, NOW), Mark("run-2", KEYS, NOW + timedelta(minutes=7))
LEASE = "*/leases/rebalancer"
NO_ZONE = '{"run": "r", "keys": [], "expires": "2026-01-15T12:00"}'


@pytest.fixture
def leases(client):
    return Leases(client, "kube-system", "rebalancer", 3600.0)


@pytest.fixture
def record(leases):
    return RunRecord(leases)


def test_runs_are_noted_and_forgotten(record):
    """The oldest first; each once, with what was noted last; a run that is not there need not be forgotten."""
    assert record.read() == ()
    record.note(TWO)
    record.note(ONE)
    record.note(TWO)
    assert record.read() == (ONE, TWO)

    record.forget(["run-1", "run-3"])
    assert record.read() == (TWO,)


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


def test_without_a_lease_one_is_made_that_nobody_holds(record, server):
    server.leases.held.clear()
    assert record.read() == ()

    record.note(ONE)

    assert record.read() == (ONE,)
    assert server.leases.holder() == ""


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

    server.forbid("get", "leases.coordination.k8s.io")
    record.note_signs(["c=d"])
    assert record.signs() == frozenset()
