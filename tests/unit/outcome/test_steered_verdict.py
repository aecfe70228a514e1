"""Steered runs are held against the greedy plan for the same cluster."""

import pytest

from tests.outcome.greedy import Greedy
from tests.outcome.result import Result, Row
from tests.outcome.verdict import verdicts

NOBODY = dict.fromkeys(Row.__dataclass_fields__, 0)
# A standard deviation of 4 points in both resources, with ten moves.
PLAN = Greedy(10, {"a": {"cpu": 46, "memory": 36}, "b": {"cpu": 54, "memory": 44}})


def run(*evictions, foreseen=1000, **end):
    rows = [Row(**{**NOBODY, "cycle": cycle, "evictions": count}) for cycle, count in enumerate((0, *evictions))]
    even = {"cpu_deviation": 5.0, "memory_deviation": 5.0}
    last = Row(**{**NOBODY, **even, "cycle": len(evictions), "evictions": evictions[-1], **end})
    return Result([*rows[:-1], last], 0, as_foreseen=(foreseen, 1000), yardstick=PLAN)


def fails(scenario, *runs):
    return [verdict.requirement for verdict in verdicts(scenario, runs, steered=True) if verdict.holds is False]


@pytest.mark.parametrize(("scenario", "most"), [("open", 20), ("deviation", 12), ("half", 13)])
def test_moves_are_counted_in_those_of_the_greedy_plan(scenario, most):
    """Twice as many in open, a quarter more in deviation, three tenths more in half."""
    assert fails(scenario, run(most, 0, 0)) == []
    assert any("moves" in what for what in fails(scenario, run(most + 1, 0, 0)))


def test_open_nodes_end_at_most_a_quarter_less_even():
    """The median of the runs, cpu and memory apart."""
    good, bad = run(10, 0, 0), run(10, 0, 0, cpu_deviation=5.1)

    assert fails("open", good, good, bad) == []
    assert ["cpu" in what for what in fails("open", good, bad, bad)] == [True]


def test_every_run_brings_every_node_in():
    assert any("nodes outside" in what for what in fails("deviation", run(9, 0, 0), run(9, 0, 0, below=1)))


def test_replacements_land_as_foreseen():
    assert fails("open", run(10, 0, 0, foreseen=950)) == []
    assert any("foreseen" in what for what in fails("open", run(10, 0, 0, foreseen=949)))


@pytest.mark.parametrize(("evictions", "holds"), [((9, 0, 0, 1), True), ((9, 0, 0, 2), False), ((9, 0, 5, 0), True)])
def test_once_at_rest_noise_moves_one_pod_at_most(evictions, holds):
    """Two quiet cycles are rest."""
    assert (fails("varying", run(*evictions)) == []) is holds


def test_no_owner_is_spread_worse_over_zones():
    assert fails("zones", run(9, 0, 0)) == []
    assert fails("zones", run(9, 0, 0, spread_worse=1)) == [
        "owners spread worse over zones than at first, all runs, at most 0"
    ]


def test_without_steering_the_greedy_plan_does_not_count():
    assert all(verdict.holds is not False for verdict in verdicts("open", [run(99, 0, 0)]))
