"""Trials in numbers, and the judgement on them."""

import json
from dataclasses import replace
from subprocess import CompletedProcess

import pytest

from tests.outcome.greedy import Greedy
from tests.outcome.policies import Bounds
from tests.outcome.result import Cycle, Result, Row, as_foreseen, result_of, table
from tests.outcome.state import Moved, State
from tests.outcome.verdict import verdicts

BOUNDS = Bounds({"cpu": 35, "memory": 35}, {"cpu": 55, "memory": 55}, deviation=False)
HOT, COLD = "node-00", "node-01"
# A standard deviation of 4 points in both resources, with ten moves.
PLAN = Greedy(10, {"a": {"cpu": 46, "memory": 36}, "b": {"cpu": 54, "memory": 44}})


def state(hot, cold, **places):
    shares = {HOT: {"cpu": hot, "memory": 10}, COLD: {"cpu": cold, "memory": 10}}
    return State(shares, shares, places)


def ran(*evictions, **end):
    """A result of so many evictions a cycle, with these figures in the end."""
    rows = [Row(cycle, evictions=count) for cycle, count in enumerate((0, *evictions))]
    return Result([*rows[:-1], replace(rows[-1], **end)], 0, yardstick=PLAN)


def fails(scenario, *runs, steered=False):
    return [each.requirement for each in verdicts(scenario, runs, steered=steered) if each.holds is False]


def test_a_trial_in_rows():
    """`a` goes, and `b` comes for it on a node that is still hot; then `b` goes and `c` comes."""
    states = [state(80, 0, a=HOT), state(60, 20, b=HOT), state(50, 30, c=COLD)]
    moves = [Moved(*map(frozenset, names)) for names in (("a", "a", "b"), ("b", "b", "c"))]
    cycles = [
        Cycle(*states[:2], moves[0], 4, CompletedProcess((), 1, "")),
        Cycle(*states[1:], moves[1], 0, CompletedProcess((), 0, "")),
    ]

    result = result_of(cycles, BOUNDS)

    start, first, second = result.rows
    assert (start.cycle, start.evictions, start.over, start.highest_cpu) == (0, 0, 1, 80)
    assert (first.cycle, first.evictions, first.refused, first.over, first.landed_over) == (1, 1, 4, 1, 1)
    assert (second.cycle, second.twice, second.over, second.landed_over) == (2, 1, 0, 0)
    assert second.cpu_deviation == pytest.approx(10)
    assert (result.evictions, result.twice, result.landed_over, result.failures) == (2, 1, 50.0, 1)
    assert (result.quiet, result.rest, result.evictions_at_rest) == (0, 2, 0)
    lines = table(result).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert [line.split()[:3] for line in lines[1:]] == [["start", "1", "0"], ["1", "1", "4"], ["2", "1", "0"]]


@pytest.mark.parametrize(("before", "after", "landed"), [(80, 50, 1), (50, 80, 1), (50, 50, 0)])
def test_a_replacement_lands_over_target_if_its_node_was_or_becomes_so(before, after, landed):
    """What the program could have known counts, and so does what came of it."""
    moved = Moved(frozenset("a"), frozenset("a"), frozenset("b"))
    cycle = Cycle(state(before, 0, a=COLD), state(after, 0, b=HOT), moved, 0, CompletedProcess((), 0, ""))

    assert result_of([cycle], BOUNDS).rows[1].landed_over == landed


def test_rest():
    """Quiet cycles are those at the end; what a cycle does after the first without a node over target is not work."""
    rows = [Row(number, over=over, evictions=count) for number, (over, count) in enumerate([(3, 0), (1, 9), (0, 2)])]

    assert [ran(*each).quiet for each in ((5, 0, 1, 0, 0), (0, 0), (0, 0, 3))] == [2, 2, 0]
    assert (Result(rows, 0).rest, Result([*rows, Row(3, over=1, evictions=4)], 0).evictions_at_rest) == (2, 4)
    assert Result(rows[:2], 0).evictions_at_rest is None


@pytest.mark.parametrize(
    ("scenario", "run", "failed"),
    [
        ("half", ran(109, 0, 0), None),
        ("half", ran(110, 0, 0), "evictions"),
        ("half", ran(50, 0, 0, over=1), "nodes over target"),
        ("half", ran(50, 0, 1), "cycles without an eviction"),
        ("half", ran(50, 0, 0, twice=1), "pods moved twice"),
        ("half", replace(ran(50, 0, 0), failures=1), "cycles whose program failed"),
        ("deviation", ran(247), None),
        ("deviation", ran(248), "evictions"),
        ("deviation", ran(9, over=1), "nodes above"),
        ("deviation", ran(9, below=1), "nodes below"),
        ("balanced", ran(1), "evictions"),
    ],
)
def test_requirements(scenario, run, failed):
    """Of a balanced cluster any run fails by one eviction; of others the medians count."""
    found = fails(scenario, *([ran(0), ran(0), run] if scenario == "balanced" else [run]))

    assert [text.startswith(failed or "-") for text in found] == [True] * bool(failed)


EVEN = {"cpu_deviation": 5.0, "memory_deviation": 5.0}


@pytest.mark.parametrize(
    ("scenario", "run", "failed"),
    [
        *((name, ran(most, 0, 0, **EVEN), None) for name, most in (("open", 20), ("deviation", 12), ("half", 13))),
        *((name, ran(most, 0, 0, **EVEN), "moves") for name, most in (("open", 21), ("deviation", 13), ("half", 14))),
        ("open", ran(10, 0, 0, cpu_deviation=5.1, memory_deviation=5.0), "cpu stddev"),
        ("deviation", ran(9, 0, 0, below=1), "nodes"),
        ("open", replace(ran(10, 0, 0, **EVEN), as_foreseen=(949, 1000)), "replacements as foreseen"),
        ("varying", ran(9, 0, 0, 1), None),
        ("varying", ran(9, 0, 0, 2), "evictions after two quiet cycles"),
        ("varying", ran(9, 0, 5, 0), None),
        ("zones", ran(9, 0, 0, spread_worse=1), "owners spread worse"),
    ],
)
def test_steered_runs_are_held_against_the_greedy_plan(scenario, run, failed):
    """For the same cluster; without steering it does not count."""
    found = fails(scenario, run, steered=True)

    assert bool(found) == bool(failed)
    assert all(text.startswith(failed) for text in found)
    assert failed != "moves" or scenario != "open" or fails(scenario, run) == []


def test_another_program_is_compared_with_and_not_judged():
    """Its figures stand beside ours, without a verdict."""
    judged = verdicts("half", [ran(50, 0, 0)], [ran(200, 0, 9, over=4)])

    assert all(verdict.holds is not False for verdict in judged)
    assert any("50 and 209 (24 %)" in str(verdict) for verdict in judged)


@pytest.mark.parametrize(
    ("said", "places", "found"),
    [
        ({"a-1": ["n1"], "a-2": ["n1"], "b-1": ["n1", "n2"], "c-1": []}, ("n1", "n2", "n2", "n1"), (2, 3)),
        ({"a-1": ["n1", "n2"], "a-2": ["n1"]}, ("n1", "n2"), (2, 2)),
        (None, ("n1",), (0, 0)),
    ],
)
def test_a_replacement_counts_once_and_for_its_own_owner(said, places, found):
    """Small sets are served first; a program that says nothing of it foresees nothing."""
    evictions = [{"name": name, "destination": {"nodes": nodes}} for name, nodes in (said or {}).items()]
    at = dict(zip(("a-3", "a-4", "b-3", "c-3"), places, strict=False))

    assert as_foreseen(json.dumps({"evictions": evictions}) if said else "done: 3 pods", at, at) == found
