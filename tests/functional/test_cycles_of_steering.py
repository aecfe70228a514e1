"""Cycle after cycle with steering: nodes come into their bands with hardly more moves than the greedy plan, and rest.

The scheduler is simulated here by a few lines that know nothing of the program's own simulator; `make outcome` plays
the same with the real one.
"""

import pytest

from tests.outcome.scenarios import SCENARIOS
from tests.outcome.simulation import play

MINUTES = 60.0


@pytest.mark.parametrize(("name", "seed", "most"), [("open", 3, 2.0), ("open", 11, 2.0), ("half", 11, 1.3)])
def test_every_node_comes_into_its_band_with_few_moves_and_then_it_rests(name, seed, most):
    """Replacements land as foreseen, and no pod is moved twice."""
    played = play(SCENARIOS[name], seed, 5 * MINUTES, min_gain=1.5, cycles=3)

    assert played.outside.total() == 0
    assert sum(played.evictions) <= most * played.yardstick.moves
    assert (played.evictions[-1], played.twice) == (0, 0)
    assert played.foreseen >= 0.95


def test_what_varies_by_a_tenth_moves_nothing():
    """Nodes that were brought in are brought in so far that noise does not take them out again."""
    played = play(SCENARIOS["varying"], 12, 5 * MINUTES, min_gain=1.5, cycles=8)

    assert sum(played.evictions[2:]) <= 1
