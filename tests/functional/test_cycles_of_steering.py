"""Cycle after cycle with steering: nodes come into their bands with hardly more moves than the greedy plan, and rest.

The scheduler is simulated here by a few lines that know nothing of the program's own simulator; `make outcome` plays
the same with the real one.
"""

import statistics

import pytest

from tests.attack.seeds import some
from tests.outcome.large import play_large
from tests.outcome.scenarios import SCENARIOS
from tests.outcome.simulation import play
from tests.outcome.state import RESOURCES, deviation, over
from tests.outcome.verdict import DEVIATION, MOVES, RESTLESS

MINUTES = 60.0


def steered(name, seed, cycles):
    return play(SCENARIOS[name], seed, 5 * MINUTES, min_gain=1.5, cycles=cycles)


@pytest.mark.parametrize(("name", "seed"), some([("open", 3), ("open", 11), ("half", 11)], 2))
def test_every_node_comes_into_its_band_in_one_cycle_with_few_moves_and_then_it_rests(name, seed):
    """Replacements land as foreseen, and no pod is moved twice."""
    played = steered(name, seed, cycles=3)

    assert played.outside.total() == 0
    assert sum(played.evictions) <= MOVES[name] * played.yardstick.moves
    assert (played.evictions[1:], played.twice) == ([0, 0], 0)
    assert played.foreseen >= 0.95


def test_open_nodes_are_about_as_even_in_the_end_as_after_the_greedy_plan():
    """The median of three loads; in the first the greedy plan makes 21 moves that bring less than a point each."""
    loads = [steered("open", seed, cycles=1) for seed in (4, 11, 31)]

    for resource in ("cpu", "memory"):
        times = [each.deviation(resource) / each.yardstick.deviation(resource) for each in loads]
        assert statistics.median(times) <= DEVIATION


def test_where_little_room_is_left_it_goes_on_while_anything_helps():
    """The load is 85 % of what the targets allow: fewer nodes stay over than without steering, and none here."""
    played = steered("hot", 3, cycles=2)
    unsteered = play(SCENARIOS["hot"], 3, 5 * MINUTES, cycles=2)

    assert (played.outside["over"], played.evictions[-1], played.twice) == (0, 0, 0)
    assert unsteered.outside["over"] > 0


def test_what_pods_wish_of_zones_is_kept():
    """No owner is spread worse than before; pods tied to a zone by a volume, and those that prefer one, move too."""
    played = steered("zones", 3, cycles=3)

    assert (played.outside.total(), played.spread_worse, played.twice) == (0, set(), 0)
    assert played.foreseen >= 0.95
    assert played.evictions[-1] == 0


def test_what_varies_by_a_tenth_moves_nothing():
    """Nodes that were brought in are brought in so far that noise does not take them out again."""
    played = steered("varying", 12, cycles=len(some(range(8), 4)))

    assert sum(played.evictions[2:]) <= RESTLESS


def test_where_the_scheduler_looks_at_a_part_of_the_nodes_none_lands_on_an_avoided_one():
    """It scores 100 of 120 nodes, and nobody knows which."""
    played = play_large(120, 1)

    assert played.steers[0].on_avoided == 0
    assert played.outside["over"] <= 0.1 * len(over(played.start, played.bounds))
    assert all(played.deviation(name) < 0.8 * deviation(played.start, name) for name in RESOURCES)
