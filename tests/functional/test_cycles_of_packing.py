"""Cycle after cycle of emptying nodes, beside the descheduler's rule on the same start and what is possible at all.

The scheduler is simulated here by a few lines that know nothing of the program's own simulator; `make outcome` plays
the same with the real one.
"""

import pytest

from tests.attack.seeds import some
from tests.outcome.packing import play_packing
from tests.outcome.scenarios import SCENARIOS

PACK = SCENARIOS["pack"]


@pytest.mark.parametrize("seed", some([1, 3]))
def test_steered_it_empties_nearly_all_that_bin_packing_could_for_few_evictions(seed):
    """With a scheduler that spreads, in one cycle; each node costs the pods that it has, and the fewest go first."""
    played = play_packing(PACK, seed)

    assert played.emptied >= played.most - 1
    assert sum(played.evictions) <= 1.05 * played.fewest_evictions
    assert played.evictions[1:] == [0, 0]


def test_the_descheduler_empties_no_node_where_all_are_underutilized_or_the_scheduler_spreads():
    """It has no destinations in the one case, and its pods come back in the other."""
    assert play_packing(PACK, 1, plain=True).evictions == [0, 0, 0]
    played = play_packing(PACK, 1, plain=True, half=True)

    assert sum(played.evictions) > 100
    assert played.emptied == 0


def test_beside_a_scheduler_that_packs_each_eviction_empties_as_much_as_with_the_descheduler():
    """On the same start, thresholds of half the nodes; compaction takes the nodes with the fewest pods."""
    ours, theirs = (play_packing(PACK, 1, plain=plain, packs=True, half=True) for plain in (False, True))

    assert ours.per_eviction >= theirs.per_eviction > 0
