"""One Lease, read and written."""

import pytest

from rebalancer.kube.answers import Transient
from rebalancer.kube.leases import Lease, Leases


@pytest.fixture
def leases(client):
    return Leases(client, "kube-system", "rebalancer", 3600.0)


def test_a_write_may_have_less_time_than_the_others(leases, server):
    """Giving back at the end; without time nothing is sent."""
    lease = leases.create(Lease("one", 60.0, None, None, 0, ""))
    sent = len(server.requests)

    with pytest.raises(Transient, match="no time left"):
        leases.update(lease, 0.0)
    assert len(server.requests) == sent
    assert leases.update(lease).holder == "one"


def test_what_was_written_is_read(leases):
    """Who holds it, for how long, how often that changed, and which version this is."""
    assert leases.read() is None
    written = leases.create(Lease("one", 60.0, None, None, 3, ""))

    assert (written.holder, written.duration, written.transitions) == ("one", 60.0, 3)
    assert written.version
    assert leases.read() == written
    assert leases.create(written) is None
