"""Two days with peaks, spikes, rollouts and failing nodes: memory pays.  `make soak` plays fourteen."""

from tests.soak.soak import soak


def test_two_days_beside_the_descheduler():
    """At most half of the hours over target, a quarter of the evictions, and none of them undone."""
    ours, theirs = (soak("targets", who, seed=21, days=2) for who in ("rebalancer", "descheduler"))

    assert ours.hours <= theirs.hours / 2
    assert ours.evictions <= theirs.evictions / 4
    assert ours.undone == 0
