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
    record.note(ONE)
    written = len(server.sent("PUT", LEASE))

    record.note(ONE)
    record.forget(["run-3"])

    assert len(server.sent("PUT", LEASE)) == written


def test_whoever_holds_the_lease_keeps_it(record, leases):
    """And what else is noted there stays."""
    before = leases.read()

    record.note(ONE)
    record.forget(["run-1"])

    after = leases.read()
    assert (after.holder, dict(after.annotations)) == (before.holder, dict(before.annotations))


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
    "text", ["", "{}", "null", "[" * 5000, '[{"run": "r", "keys": [], "expires": "2026-01-15T12:00"}]']
)
def test_what_cannot_be_read_names_no_run(record, server, text):
    """And is replaced by what is noted next."""
    server.leases.note("kube-rebalancer/runs", text)
    assert record.read() == ()

    record.note(ONE)
    assert record.read() == (ONE,)


@pytest.mark.parametrize("entry", ['{"run": "r", "keys": [], "expires": "2026-01-15T12:00"}', '{"run": 7}', "null"])
def test_an_entry_that_cannot_be_read_does_not_hide_the_others(record, server, entry):
    """A run that is at work stays known, or its taints would be taken off."""
    server.leases.note("kube-rebalancer/runs", f"[{entry},{ONE.text()}]")
    assert record.read() == (ONE,)

    record.note(TWO)
    assert record.read() == (ONE, TWO)


def test_the_record_does_not_grow_for_ever(record):
    for number in range(52):
        record.note(Mark(f"run-{number}", (), NOW))

    assert [each.run for each in record.read()] == [f"run-{number}" for number in range(2, 52)]


def test_labels_and_taints_are_noted_once(record, server):
    """With those of before; where the Lease cannot be had, marking goes on without."""
    record.note_signs(["status=presure"])
    record.note_signs(["a=b"])
    written = len(server.sent("PUT", LEASE))
    record.note_signs(["status=presure"])
    assert record.signs() == {"a=b", "status=presure"}
    assert len(server.sent("PUT", LEASE)) == written

    server.forbid("get", "leases.coordination.k8s.io")
    record.note_signs(["c=d"])
    assert record.signs() == frozenset()
