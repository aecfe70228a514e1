"""One Lease, read and written."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from rebalancer.kube.answers import Rejected, Transient
from rebalancer.kube.leases import Lease, Leases


@pytest.fixture
def leases(client, server):
    server.leases.held.clear()
    return Leases(client, "kube-system", "rebalancer", 3600.0)


def test_a_write_may_have_less_time_than_the_others(leases, server):
    """Giving back at the end; without time nothing is sent."""
    lease = leases.write(Lease("one", 60.0, None, None, 0, ""))
    sent = len(server.requests)

    with pytest.raises(Transient, match="no time left"):
        leases.write(lease, 0.0)
    assert len(server.requests) == sent
    assert leases.write(lease).holder == "one"


def test_what_was_written_is_read(leases):
    assert leases.read() is None
    written = leases.write(Lease("one", 60.0, None, None, 3, ""))

    assert (written.holder, written.duration, written.transitions) == ("one", 60.0, 3)
    assert written.version
    assert leases.read() == written
    assert leases.write(replace(written, version="")) is None


def test_a_lease_that_was_deleted_is_not_made_anew(leases, server):
    """As the API server would: for it, a PUT that does not say by its UID which Lease it means may create one."""
    written = leases.write(Lease("one", 60.0, None, None, 0, ""))
    server.leases.held.clear()

    assert leases.write(written) is None
    assert leases.read() is None


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
    server.fail("GET", "*/leases/rebalancer", status=200, body=body)

    with pytest.raises(Rejected, match=r"does not answer .*/leases/rebalancer with a Lease"):
        leases.read()


def test_a_lease_that_was_never_held_has_changed_hands_never(leases, server):
    """What is null was not written; a time without a zone is in UTC."""
    spec = {"holderIdentity": None, "leaseDurationSeconds": None, "leaseTransitions": None}
    spec |= {"renewTime": "2026-01-15T12:00:00"}
    document = {"kind": "Lease", "metadata": {"resourceVersion": "1"}, "spec": spec}
    server.fail("GET", "*/leases/rebalancer", status=200, body=document)

    found = leases.read()

    assert (found.holder, found.duration, found.transitions) == ("", 0, 0)
    assert found.renewed == datetime(2026, 1, 15, 12, tzinfo=UTC)
