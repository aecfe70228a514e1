"""A trial in numbers: a row a cycle, and what they come to."""

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, nan
from operator import attrgetter
from typing import Any

from tests.outcome.greedy import Greedy, greedy
from tests.outcome.load import Workload, nodes_needed, points
from tests.outcome.scenarios import Bounds
from tests.outcome.state import Moved, State, below_band, moved_twice, over
from tests.outcome.zones import skews, worse

#: Of the table: the figures of a row by their titles.
COLUMNS = {
    **{name: name for name in ("cycle", "evictions", "refused")},
    "over target": "over",
    "below band": "below",
    "cpu stddev": "cpu_deviation",
    "mem stddev": "memory_deviation",
    "highest cpu": "highest_cpu",
    "highest mem": "highest_memory",
    "Pending": "pending",
    "moved twice": "twice",
    "landed over": "landed_over",
    "empty": "empty",
}


@dataclass(frozen=True)
class Cycle:
    start: State  # the cluster before it
    end: State  # the cluster after it, when all pods are at rest
    moved: Moved  # the pods that went and came
    refused: int = 0  # how often the Eviction API said no
    failed: bool = False  # whether the program did
    # How many replacements came where the program had foreseen them, and for how many it had foreseen any node.
    foreseen: tuple[int, int] = (0, 0)
    shares: Sequence[tuple[float, bool]] = ()  # see `shares_told`


@dataclass(frozen=True)
class Row:
    """A cycle and the cluster after it; cycle 0 is the start."""

    cycle: int  # its number
    over: int = 0  # nodes above target, or above the band around the mean
    below: int = 0  # nodes below the band around the mean; 0 where there is no band
    cpu_deviation: float = 0.0  # standard deviation of the nodes' cpu, in points
    memory_deviation: float = 0.0  # the same of memory
    highest_cpu: float = 0.0  # the highest node's, in percent
    highest_memory: float = 0.0  # the same of memory
    pending: int = 0  # pods without a node
    empty: int = 0  # nodes without a pod
    evictions: int = 0  # how many were granted
    refused: int = 0  # how often the Eviction API refused one
    twice: int = 0  # pods moved twice within three cycles
    replacements: int = 0  # pods that came
    landed_over: int = 0  # those of them that came to a node above target, before the cycle or after it
    spread_worse: int = 0  # owners whose pods are spread less evenly over zones than at the start

    @property
    def outside(self) -> int:
        return self.over + self.below


@dataclass(frozen=True)
class Result:
    rows: Sequence[Row]
    start: State
    bounds: Bounds
    points: Mapping[str, Sequence[tuple[float, float]]]  # by node, what each pod used at the start
    failures: int = 0  # cycles whose program failed
    needed: int = 0  # how many nodes the pods need at least
    as_foreseen: tuple[int, int] = (0, 0)  # as of a cycle
    shares: Sequence[tuple[float, bool]] = ()  # as of a cycle
    steers: Sequence[Any] = ()  # in a simulation, what carried the waves out
    seconds: float = 0.0  # of CPU, to decide on all of it

    @cached_property
    def yardstick(self) -> Greedy:
        """What a greedy plan comes to from the same start."""
        return greedy(self.start.shares, self.points, self.bounds)

    @property
    def foreseen(self) -> float:
        """The share of replacements that came where they had been foreseen, in percent; all if there was none."""
        hits, told = self.as_foreseen
        return 100 * hits / told if told else 100.0

    @property
    def by_cycle(self) -> list[int]:
        return [row.evictions for row in self.rows[1:]]

    @property
    def fewest_evictions(self) -> int:
        """How many pods had to go at least for so many empty nodes."""
        counts = Counter(self.start.places.values())
        return sum(sorted(counts[name] for name in self.start.shares)[: self.end.empty])

    @property
    def end(self) -> Row:
        return self.rows[-1]

    @property
    def evictions(self) -> int:
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
    def evictions_at_rest(self) -> float:
        """Evictions after the first cycle with no node above target; not a number if there was none."""
        rest = next((row.cycle for row in self.rows if not row.over), None)
        return nan if rest is None else sum(row.evictions for row in self.rows if row.cycle > rest)

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


def result_of(cycles: Sequence[Cycle], bounds: Bounds, load: Sequence[Workload], **more: Any) -> Result:
    start = cycles[0].start
    first = skews(start.by_owner)
    rows = [Row(0, **_figures(start, bounds))]
    for number, (cycle, twice) in enumerate(zip(cycles, moved_twice([each.moved for each in cycles]), strict=True), 1):
        hot = over(cycle.start.shares, bounds) | over(cycle.end.shares, bounds)
        landed = [cycle.end.places[pod] for pod in cycle.moved.replacements]
        rows.append(
            Row(
                number,
                **_figures(cycle.end, bounds),
                evictions=len(cycle.moved.evicted),
                refused=cycle.refused,
                twice=len(twice),
                replacements=len(landed),
                landed_over=sum(node in hot for node in landed),
                spread_worse=len(worse(first, skews(cycle.end.by_owner))),
            )
        )
    foreseen = (sum(cycle.foreseen[0] for cycle in cycles), sum(cycle.foreseen[1] for cycle in cycles))
    failures, used = sum(cycle.failed for cycle in cycles), points(load, start.by_owner)
    shares = [each for cycle in cycles for each in cycle.shares]
    return Result(rows, start, bounds, used, failures, nodes_needed(load), foreseen, shares, **more)


def _figures(state: State, bounds: Bounds) -> dict[str, Any]:
    return {
        "over": len(over(state.shares, bounds)),
        "below": len(below_band(state.shares, bounds)),
        "cpu_deviation": state.deviation("cpu"),
        "memory_deviation": state.deviation("memory"),
        "highest_cpu": state.highest("cpu"),
        "highest_memory": state.highest("memory"),
        "pending": state.pending,
        "empty": state.empty,
    }


def median(results: Sequence[Result], figure: str | Callable[[Result], float]) -> float:
    """Return the median of a figure over all runs: of an attribute like `end.over`, or of what a function makes."""
    return statistics.median(map(figure if callable(figure) else attrgetter(figure), results))


def as_foreseen(report: str, places: Mapping[str, str], replacements: Iterable[str]) -> tuple[int, int]:
    """Return how many replacements came where they were foreseen, and how many evictions said where.

    Which replacement came for which pod nobody knows: an owner's are alike, so as many are counted as can be, each once
    for a pod of its owner whose set of nodes holds the node.

    Args:
        report: The program's, as JSON; another program's output foresees nothing.
        places: The node of each pod, by name.
        replacements: Their names.
    """
    try:
        evictions = json.loads(report)["evictions"]
    except (ValueError, TypeError, KeyError):
        return 0, 0
    told = [(_owner(each["name"]), (each.get("destination") or {}).get("nodes")) for each in evictions]
    told = [each for each in told if each[1]]
    landed = defaultdict(list)
    for name in replacements:
        landed[_owner(name), places[name]].append(name)
    came_for: dict[str, int] = {}

    def counts(number: int, seen: set[str]) -> bool:
        owner, nodes = told[number]
        for name in [each for node in nodes for each in landed[owner, node] if each not in seen]:
            seen.add(name)
            if name not in came_for or counts(came_for[name], seen):
                came_for[name] = number
                return True
        return False

    return sum(counts(number, set()) for number in range(len(told))), len(told)


def shares_told(report: str, places: Mapping[str, str], replacements: Iterable[str]) -> list[tuple[float, bool]]:
    """Return for each node that was named the share told for it, and whether the replacement landed there.

    Only of owners of which one pod went: of others nobody knows which replacement came for which pod.
    """
    landed: dict[str, list[str]] = {}
    for name in replacements:
        landed.setdefault(_owner(name), []).append(places[name])
    try:
        told = [(landed.get(_owner(each["name"])), each["destination"]) for each in json.loads(report)["evictions"]]
    except (ValueError, TypeError, KeyError):
        return []
    known = [(nodes[0], each) for nodes, each in told if each and nodes and len(nodes) == 1]
    pairs = ((node, pair) for node, each in known for pair in zip(each["nodes"], each["share"], strict=False))
    return [(share, name == node) for node, (name, share) in pairs]


def calibration(shares: Iterable[tuple[float, bool]]) -> list[str]:
    """Return a table, a line for each tenth: the shares told, and how many replacements landed there."""
    tenths: defaultdict[int, list[tuple[float, bool]]] = defaultdict(list)
    for share, came in shares:
        tenths[ceil(10 * share)].append((share, came))
    lines = ["predicted share, share of the replacements that landed there, number of predictions:"]
    for _, told in sorted(tenths.items()):
        means = (statistics.mean(column) for column in zip(*told, strict=True))
        lines.append("{:10.1%} {:11.1%}".format(*means) + f" {len(told):6,}")
    return lines


def _owner(name: str) -> str:
    """The owner of a pod: its name without the part that tells its pods apart."""
    return name.rpartition("-")[0]


def table(result: Result) -> str:
    """Return a trial's table, a line a cycle; percentages and points with one decimal."""
    lines = [[_cell(getattr(row, name)) for name in COLUMNS.values()] for row in result.rows]
    lines[0][:3] = ["start", "", ""]
    widths = [max(map(len, column)) for column in zip(COLUMNS, *lines, strict=True)]
    rows = (zip(line, widths, strict=True) for line in (COLUMNS, *lines))
    return "\n".join("  ".join(cell.rjust(width) for cell, width in row) for row in rows)


def _cell(value: float) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)
