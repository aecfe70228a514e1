"""Days with peaks, spikes, rollouts and failing nodes: memory pays.  `make soak` plays fourteen."""

import pytest

from tests.attack.seeds import some
from tests.soak.soak import soak


@pytest.mark.parametrize(("seed", "days"), some([(24, 1), (21, 2)]))
def test_days_beside_the_descheduler(seed, days):
    """At most half of the hours over target, a quarter of the evictions, and none of them undone."""
    ours, theirs = (soak("targets", who, seed=seed, days=days) for who in ("rebalancer", "descheduler"))

    assert ours.hours <= theirs.hours / 2
    assert ours.evictions <= theirs.evictions / 4
    assert ours.undone == 0
