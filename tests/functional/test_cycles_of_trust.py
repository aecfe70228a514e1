"""Days with peaks, spikes, rollouts and failing nodes: memory pays.  `make soak` plays fourteen."""

from statistics import median

import pytest

from tests.attack.seeds import some
from tests.soak.soak import soak


@pytest.mark.parametrize(("seeds", "days"), some([((24,), 0.5), ((3, 21, 24), 2)]))
def test_days_beside_the_descheduler(seeds, days):
    """At most half of the hours over target, a quarter of the evictions, none undone; medians, as in `make soak`."""
    ours, theirs = ([soak("targets", who, seed, days) for seed in seeds] for who in ("rebalancer", "descheduler"))

    assert median(each.hours for each in ours) <= median(each.hours for each in theirs) / 2
    assert median(each.evictions for each in ours) <= median(each.evictions for each in theirs) / 4
    assert [each.undone for each in ours] == [0] * len(seeds)
