"""Cycle after cycle: relief cures and rests, steering hardly makes a move too many, packing empties nodes, memory pays.

The scheduler is simulated here by a few lines that know nothing of the program's own simulator, so that a trial takes a
second and is the same every time; `make outcome` plays the same scenarios with the real one, `make soak` two weeks.
"""

import statistics
from dataclasses import replace

import pytest

from tests.attack.seeds import some
from tests.outcome.large import play_large
from tests.outcome.load import NODES
from tests.outcome.packing import play_packing
from tests.outcome.scenarios import SCENARIOS
from tests.outcome.simulation import play
from tests.outcome.verdict import DEVIATION, MOVES, REFERENCE_DEVIATION, REFERENCE_HALF, RESTLESS, SHARE
from tests.soak.soak import problems, soak

MINUTES = 60.0
PACK = SCENARIOS["pack"]


@pytest.mark.parametrize("seed", some([1, 2, 3]))
def test_hot_nodes_are_cured_with_few_moves_and_then_it_rests(seed):
    """No node over target, three fifths of the descheduler's evictions or hardly more, and no move in the end.

    Equal nodes tie all the time; nine in ten replacements land on a node that was named for them.
    """
    played = play(SCENARIOS["half"], seed, 5 * MINUTES, cycles=len(some(range(6), 4)))

    assert played.end.over == 0
    assert played.evictions <= SHARE * max(REFERENCE_HALF)
    assert (played.by_cycle[-2:], played.twice) == ([0, 0], 0)
    assert played.foreseen >= 90


@pytest.mark.parametrize("seed", some([4, 1, 2, 3]))
def test_nodes_come_into_the_band_around_the_mean(seed):
    """Of thirty nodes outside few stay so, with fewer evictions than the descheduler's; fewer with each cycle."""
    cycles, pods = len(some(range(6), 2)), some([300, 600])[-1]
    played = play(replace(SCENARIOS["deviation"], pods=pods), seed, 5 * MINUTES, cycles=cycles)

    assert played.end.outside <= (4 if cycles > 2 else 8)
    assert played.evictions <= REFERENCE_DEVIATION * pods / 600
    assert played.twice == 0


@pytest.mark.parametrize("seed", some([1, 5]))
def test_pods_do_not_go_round_where_requests_are_even(seed):
    """What the scheduler would put back stays: without the forecast pods come back, and go again an hour later."""
    cycles = len(some(range(4), 2))
    hourly = replace(SCENARIOS["open"], cycles=cycles)

    assert play(hourly, seed, 60 * MINUTES).twice == 0
    assert play(hourly, seed, 60 * MINUTES, scheduler="unknown").twice >= 4 * (cycles - 1)


def test_a_balanced_cluster_is_left_alone():
    assert play(SCENARIOS["balanced"], 1, 5 * MINUTES).evictions == 0


def steered(name, seed, cycles):
    return play(SCENARIOS[name], seed, 5 * MINUTES, min_gain=1.5, cycles=cycles)


@pytest.mark.parametrize(("name", "seed"), some([("open", 3), ("open", 11), ("half", 11)], 2))
def test_every_node_comes_into_its_band_in_two_cycles_with_few_moves_and_then_it_rests(name, seed):
    """What has to go to a node that was over itself waits for the second cycle: hardly anything."""
    played = steered(name, seed, cycles=3)

    assert (played.end.outside, played.landed_over) == (0, 0)
    assert played.evictions <= MOVES[name] * played.yardstick.moves
    assert played.by_cycle[1] <= 0.1 * played.evictions
    assert (played.by_cycle[2], played.twice) == (0, 0)
    assert played.foreseen >= 95


def test_open_nodes_are_about_as_even_in_the_end_as_after_the_greedy_plan():
    """The median of three loads; in the first the greedy plan makes 21 moves that bring less than a point each."""
    loads = [steered("open", seed, cycles=1) for seed in (4, 11, 31)]

    for resource in ("cpu", "memory"):
        times = [getattr(each.end, f"{resource}_deviation") / each.yardstick.deviation(resource) for each in loads]
        assert statistics.median(times) <= DEVIATION


def test_where_little_room_is_left_it_goes_on_while_anything_helps():
    """The load is 85 % of what the targets allow: fewer nodes stay over than without steering, and none here."""
    played = steered("hot", 3, cycles=2)
    unsteered = play(SCENARIOS["hot"], 3, 5 * MINUTES, cycles=2)

    assert (played.end.over, played.by_cycle[-1], played.twice) == (0, 0, 0)
    assert unsteered.end.over > 0


def test_what_pods_wish_of_zones_is_kept():
    """No owner is spread worse than before; pods tied to a zone by a volume, and those that prefer one, move too."""
    played = steered("zones", 3, cycles=3)

    assert (played.end.outside, played.end.spread_worse, played.twice) == (0, 0, 0)
    assert played.foreseen >= 95
    assert played.by_cycle[-1] == 0


def test_what_varies_by_a_tenth_moves_nothing():
    """Nodes that were brought in are brought in so far that noise does not take them out again."""
    played = steered("varying", 12, cycles=len(some(range(8), 4)))

    assert sum(played.by_cycle[2:]) <= RESTLESS


def test_where_the_scheduler_looks_at_a_part_of_the_nodes_none_lands_on_an_avoided_one():
    """It scores 100 of 120 nodes, and nobody knows which."""
    played = play_large(120, 1)

    assert played.steers[0].on_avoided == 0
    start, end = played.rows[0], played.end
    assert end.over <= 0.1 * start.over
    assert end.cpu_deviation < 0.8 * start.cpu_deviation
    assert end.memory_deviation < 0.8 * start.memory_deviation


@pytest.mark.parametrize("seed", some([1, 3]))
def test_steered_it_empties_nearly_all_that_bin_packing_could_for_few_evictions(seed):
    """With a scheduler that spreads, in one cycle; each node costs the pods that it has, and the fewest go first."""
    played = play_packing(PACK, seed)

    assert played.end.empty >= NODES - played.needed - 1
    assert played.evictions <= 1.05 * played.fewest_evictions
    assert played.by_cycle[1:] == [0, 0]


def test_the_descheduler_empties_no_node_where_all_are_underutilized_or_the_scheduler_spreads():
    """It has no destinations in the one case, and its pods come back in the other."""
    assert play_packing(PACK, 1, plain=True).evictions == 0
    played = play_packing(PACK, 1, plain=True, half=True)

    assert played.evictions > 100
    assert played.end.empty == 0


def test_beside_a_scheduler_that_packs_each_eviction_empties_as_much_as_with_the_descheduler():
    """On the same start, thresholds of half the nodes; compaction takes the nodes with the fewest pods."""
    ours, theirs = (play_packing(PACK, 1, plain=plain, packs=True, half=True) for plain in (False, True))

    assert ours.emptied_per_eviction >= theirs.emptied_per_eviction > 0


@pytest.mark.parametrize(("seeds", "days"), some([((24,), 0.25), ((3, 21, 24), 2)]))
def test_days_beside_the_descheduler(seeds, days):
    """At most half of the hours over target, a quarter of the evictions, none undone; medians, as in `make soak`."""
    ours, theirs = ([soak("targets", who, seed, days) for seed in seeds] for who in ("rebalancer", "descheduler"))

    assert list(problems(ours, theirs)) == []
    assert [each.undone for each in ours] == [0] * len(seeds)
