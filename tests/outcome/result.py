"""A trial in numbers: a row a cycle, and what they come to."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tests.outcome.foreseen import as_foreseen
from tests.outcome.greedy import NO_MOVES, Greedy
from tests.outcome.moves import moved_twice
from tests.outcome.policies import Bounds
from tests.outcome.state import State, below_band, over
from tests.outcome.trial import Cycle, Trial
from tests.outcome.zones import skews, worse


@dataclass(frozen=True)
class Row:
    """A cycle and the cluster after it; cycle 0 is the start.

    Attributes:
        cycle: Its number.
        evictions: How many were granted.
        refused: How often the Eviction API refused one.
        over: Nodes above target, or above the band around the mean.
        below: Nodes below the band around the mean; 0 where there is no band.
        cpu_deviation: Standard deviation of the nodes' cpu, in points.
        memory_deviation: The same of memory.
        highest_cpu: The highest node's, in percent.
        highest_memory: The same of memory.
        noise: How far off the metrics API's figures are at most, in points.
        pending: Pods without a node.
        twice: Pods moved twice within three cycles.
        replacements: Pods that came.
        landed_over: Those of them that came to a node above target, before the cycle or after it.
        spread_worse: Owners whose pods are spread less evenly over zones than at the start.
        empty: Nodes without a pod.
    """

    cycle: int
    evictions: int
    refused: int
    over: int
    below: int
    cpu_deviation: float
    memory_deviation: float
    highest_cpu: float
    highest_memory: float
    noise: float
    pending: int
    twice: int
    replacements: int
    landed_over: int
    spread_worse: int = 0
    empty: int = 0


@dataclass(frozen=True)
class Result:
    """All rows of a trial.

    Attributes:
        rows: In order.
        failures: Cycles whose program failed.
        needed: How many nodes the pods need at least.
        as_foreseen: How many replacements came where the report had foreseen them, and of how many it did.
        yardstick: What a greedy plan comes to from the same start.
    """

    rows: Sequence[Row]
    failures: int
    needed: int = 0
    as_foreseen: tuple[int, int] = (0, 0)
    yardstick: Greedy = NO_MOVES

    @property
    def foreseen(self) -> float:
        """The share of replacements that came where the report had foreseen them, in percent; all if there was none."""
        hits, told = self.as_foreseen
        return 100 * hits / told if told else 100.0

    @property
    def end(self) -> Row:
        """The last row."""
        return self.rows[-1]

    @property
    def evictions(self) -> int:
        """All of them."""
        return sum(row.evictions for row in self.rows)

    @property
    def emptied_per_eviction(self) -> float:
        """How many nodes were emptied for each eviction; 0 without one."""
        return (self.end.empty - self.rows[0].empty) / self.evictions if self.evictions else 0.0

    @property
    def twice(self) -> int:
        """Pods moved twice within three cycles."""
        return sum(row.twice for row in self.rows)

    @property
    def quiet(self) -> int:
        """How many cycles in the end went by without an eviction."""
        busy = [row.cycle for row in self.rows if row.evictions]
        return self.end.cycle - (busy[-1] if busy else 0)

    @property
    def rest(self) -> int | None:
        """The first cycle after which no node was above target; None if there was none."""
        return next((row.cycle for row in self.rows if not row.over), None)

    @property
    def evictions_at_rest(self) -> int | None:
        """Evictions in the cycles after `rest`."""
        if self.rest is None:
            return None
        return sum(row.evictions for row in self.rows if row.cycle > self.rest)

    @property
    def restless(self) -> int:
        """Evictions after the first two cycles in a row without any."""
        calm = [not row.evictions for row in self.rows[1:]]
        first = next((place for place in range(1, len(calm)) if calm[place - 1] and calm[place]), len(calm))
        return sum(row.evictions for row in self.rows[first + 2 :])

    @property
    def landed_over(self) -> float:
        """The share of replacements that came to a node above target, in percent."""
        replacements = sum(row.replacements for row in self.rows)
        return 100 * sum(row.landed_over for row in self.rows) / replacements if replacements else 0.0


def result_of(trial: Trial) -> Result:
    """Return a trial in numbers."""
    cycles = trial.cycles
    twice = moved_twice([cycle.moved for cycle in cycles])
    start = _row(0, cycles[0].start, trial.bounds)
    after = [
        _after(number, cycle, trial.bounds, len(twice[number - 1])) for number, cycle in enumerate(cycles, start=1)
    ]
    hits = [as_foreseen(cycle.ran.stdout, cycle.end.places, cycle.moved.replacements) for cycle in cycles]
    failures = sum(cycle.ran.exit_code != 0 for cycle in cycles)
    landed = (sum(hit for hit, _ in hits), sum(told for _, told in hits))
    rows = [start, *(_with_zones(after, cycles) if trial.zoned else after)]
    return Result(rows, failures, trial.needed, landed, trial.yardstick)


def _with_zones(rows: Sequence[Row], cycles: Sequence[Cycle]) -> list[Row]:
    first = skews(cycles[0].start.by_owner)
    found = zip(rows, cycles, strict=True)
    return [replace(row, spread_worse=len(worse(first, skews(cycle.end.by_owner)))) for row, cycle in found]


def median(results: Sequence[Result], figure: Callable[[Result], float]) -> float:
    """Return the median of a figure over all runs."""
    return statistics.median(figure(result) for result in results)


def _after(number: int, cycle: Cycle, bounds: Bounds, twice: int) -> Row:
    hot = over(cycle.start.shares, bounds) | over(cycle.end.shares, bounds)
    landed = [cycle.end.places[pod] for pod in cycle.moved.replacements]
    return _row(
        number,
        cycle.end,
        bounds,
        evictions=len(cycle.moved.evicted),
        refused=cycle.refused,
        twice=twice,
        replacements=len(landed),
        landed_over=sum(node in hot for node in landed),
    )


def _row(
    number: int,
    state: State,
    bounds: Bounds,
    *,
    evictions: int = 0,
    refused: int = 0,
    twice: int = 0,
    replacements: int = 0,
    landed_over: int = 0,
) -> Row:
    return Row(
        cycle=number,
        evictions=evictions,
        refused=refused,
        over=len(over(state.shares, bounds)),
        below=len(below_band(state.shares, bounds)),
        cpu_deviation=state.deviation("cpu"),
        memory_deviation=state.deviation("memory"),
        highest_cpu=state.highest("cpu"),
        highest_memory=state.highest("memory"),
        noise=state.noise,
        pending=state.pending,
        twice=twice,
        replacements=replacements,
        landed_over=landed_over,
        empty=state.empty,
    )
