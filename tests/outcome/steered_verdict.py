"""What steered runs have to come to, beside the greedy plan (`greedy`) for the same cluster.

That plan moves one pod after the other, so it keeps to the same PDBs and shares of owners.
"""

from collections.abc import Callable, Sequence

from tests.outcome.requirement import Verdict, at_most
from tests.outcome.result import Result, median

#: By scenario, how many times the moves of the greedy plan a run may make.
MOVES = {"open": 2.0, "deviation": 1.25, "half": 1.3}
#: How many times the standard deviation that the greedy plan ends with.
DEVIATION = 1.25
#: The share of replacements that land as foreseen, in percent.
FORESEEN = 95.0
#: Evictions after two quiet cycles, where usage varies by a tenth.
RESTLESS = 1

Results = Sequence[Result]


def steered_verdicts(scenario: str, runs: Results) -> list[Verdict]:
    """Judge the steered runs of one scenario."""
    judged: dict[str, Callable[[Results], list[Verdict]]] = {"open": _open, "varying": _varying, "zones": _zones}
    found = [*judged[scenario](runs)] if scenario in judged else []
    if scenario in MOVES:
        outside = max(run.end.over + run.end.below for run in runs)
        moves = median(runs, lambda run: run.evictions / max(run.yardstick.moves, 1))
        found += [
            at_most("moves beside the greedy plan's, times", round(moves, 2), MOVES[scenario]),
            at_most("nodes outside their band or over target in the end, every run", outside, 0),
        ]
    least = min(run.foreseen for run in runs)
    return [*found, Verdict(f"replacements as foreseen, at least {FORESEEN:g} %", f"{least:.1f}", least >= FORESEEN)]


def _open(runs: Results) -> list[Verdict]:
    cpu = median(runs, lambda run: run.end.cpu_deviation / run.yardstick.deviation("cpu"))
    memory = median(runs, lambda run: run.end.memory_deviation / run.yardstick.deviation("memory"))
    return [
        at_most("cpu stddev in the end beside the greedy plan's, times", round(cpu, 2), DEVIATION),
        at_most("memory stddev in the end beside the greedy plan's, times", round(memory, 2), DEVIATION),
    ]


def _varying(runs: Results) -> list[Verdict]:
    most = max(run.restless for run in runs)
    return [at_most("evictions after two quiet cycles, every run", most, RESTLESS)]


def _zones(runs: Results) -> list[Verdict]:
    return [
        at_most("owners spread worse over zones than at first, all runs", sum(run.end.spread_worse for run in runs), 0)
    ]
