"""Trials in numbers, and the judgement on them."""

from dataclasses import replace

import pytest

from tests.outcome.moves import Moved
from tests.outcome.policies import Bounds
from tests.outcome.program import Ran
from tests.outcome.result import Result, Row, median, result_of
from tests.outcome.state import State
from tests.outcome.table import table
from tests.outcome.trial import Cycle, Trial
from tests.outcome.verdict import verdicts

BOUNDS = Bounds({"cpu": 35, "memory": 35}, {"cpu": 55, "memory": 55}, deviation=False)
RAN = Ran(0, "", "", 1.0)


def state(hot, cold, **places):
    shares = {"hot": {"cpu": hot, "memory": 10}, "cold": {"cpu": cold, "memory": 10}}
    return State(shares, shares, places)


def trial(ran=RAN):
    """Two cycles: `a` goes, `b` comes for it on a node that is still hot; then `b` goes and `c` comes."""
    first, second = state(80, 0, a="hot"), state(60, 20, b="hot")
    third = state(50, 30, c="cold")
    moves = [Moved(*map(frozenset, names)) for names in (("a", "a", "b"), ("b", "b", "c"))]
    cycles = [Cycle(first, second, moves[0], 4, ran), Cycle(second, third, moves[1], 0, ran)]
    return Trial(BOUNDS, {}, cycles)


def row(cycle=0, evictions=0, **figures):
    zero = dict.fromkeys(Row.__dataclass_fields__, 0)
    return Row(**{**zero, "cycle": cycle, "evictions": evictions, **figures})


def quiet_after(*evictions, **end):
    rows = [row(cycle, count) for cycle, count in enumerate((0, *evictions))]
    return Result([*rows[:-1], replace(rows[-1], **end)], 0)


def test_a_row_tells_of_the_cycle_and_of_the_cluster_after_it():
    """The start is row 0; a replacement on a node over target before or after the cycle is counted."""
    start, first, second = result_of(trial()).rows

    assert (start.cycle, start.evictions, start.over, start.highest_cpu) == (0, 0, 1, 80)
    assert (first.cycle, first.evictions, first.refused, first.over, first.landed_over) == (1, 1, 4, 1, 1)
    assert (second.cycle, second.twice, second.over, second.landed_over) == (2, 1, 0, 0)
    assert second.cpu_deviation == pytest.approx(10)


@pytest.mark.parametrize(("before", "after", "landed"), [(80, 50, 1), (50, 80, 1), (50, 50, 0)])
def test_a_replacement_lands_over_target_if_its_node_was_or_becomes_so(before, after, landed):
    """What the program could have known counts, and so does what came of it."""
    moved = Moved(frozenset("a"), frozenset("a"), frozenset("b"))
    cycle = Cycle(state(before, 0, a="cold"), state(after, 0, b="hot"), moved, 0, RAN)

    assert result_of(Trial(BOUNDS, {}, [cycle])).rows[1].landed_over == landed


def test_a_trial_sums_its_rows():
    """Evictions, pods moved twice, and the share of replacements on nodes over target."""
    result = result_of(trial())

    assert (result.evictions, result.twice, result.landed_over) == (2, 1, 50.0)
    assert (result.quiet, result.rest, result.evictions_at_rest) == (0, 2, 0)


def test_a_failed_run_is_counted():
    """An exit code other than 0 is a failure, whatever came of it."""
    assert result_of(trial(replace(RAN, exit_code=1))).failures == 2


def test_rest_begins_after_the_last_eviction():
    """Quiet cycles are those at the end; a cluster that nobody touched was quiet throughout."""
    assert quiet_after(5, 0, 1, 0, 0).quiet == 2
    assert quiet_after(0, 0).quiet == 2
    assert quiet_after(0, 0, 3).quiet == 0


def test_evictions_at_rest_are_those_after_no_node_was_over():
    """What a cycle does whose end is the first without a node over target is work, what comes later is not."""
    rows = [row(0, over=3), row(1, 9, over=1), row(2, 2, over=0), row(3, 4, over=1), row(4, 1, over=0)]

    assert Result(rows, 0).rest == 2
    assert Result(rows, 0).evictions_at_rest == 5
    assert Result(rows[:2], 0).evictions_at_rest is None


def test_the_median_is_over_runs():
    """Of three the middle one."""
    runs = [quiet_after(3), quiet_after(90), quiet_after(5)]

    assert median(runs, lambda run: run.evictions) == 5


@pytest.mark.parametrize(
    ("run", "fails"),
    [
        (quiet_after(109, 0, 0), None),
        (quiet_after(110, 0, 0), "evictions"),
        (quiet_after(50, 0, 0, over=1), "nodes over target"),
        (quiet_after(50, 0, 1), "cycles without an eviction"),
        (quiet_after(50, 0, 0, twice=1), "pods moved twice"),
        (replace(quiet_after(50, 0, 0), failures=1), "cycles whose program failed"),
    ],
)
def test_the_half_has_its_requirements(run, fails):
    """No node over target, 60 % of 182 evictions, then rest; nothing twice, no failure."""
    failed = [verdict.requirement for verdict in verdicts("half", [run]) if verdict.holds is False]

    assert [text for text in failed if not fails or not text.startswith(fails)] == []
    assert bool(failed) == bool(fails)


@pytest.mark.parametrize(
    ("run", "holds"),
    [
        (quiet_after(247), True),
        (quiet_after(248), False),
        (quiet_after(9, over=1), False),
        (quiet_after(9, below=1), False),
    ],
)
def test_the_deviation_has_its_requirements(run, holds):
    """Every node within its band on either side, with no more evictions than the descheduler."""
    assert all(verdict.holds is not False for verdict in verdicts("deviation", [run])) is holds


def test_one_eviction_of_a_balanced_cluster_fails_in_any_run():
    """Not the median: no run may evict."""
    judged = verdicts("balanced", [quiet_after(0), quiet_after(0), quiet_after(1)])

    assert judged[0].holds is False


def test_another_program_is_compared_with_and_not_judged():
    """Its figures stand beside ours, without a verdict."""
    judged = verdicts("half", [quiet_after(50, 0, 0)], [quiet_after(200, 0, 9, over=4)])

    assert all(verdict.holds is not False for verdict in judged)
    assert any("50 and 209 (24 %)" in str(verdict) for verdict in judged)


def test_the_table_has_a_line_a_cycle():
    """A header, the start, and a line for each cycle, all of one width."""
    lines = table(result_of(trial())).splitlines()

    assert len(lines) == 4
    assert len({len(line) for line in lines}) == 1
    assert lines[1].split()[:2] == ["start", "1"]
    assert lines[3].split()[:4] == ["2", "1", "0", "0"]
