"""A trial as a table on a terminal."""

from collections.abc import Sequence

from tests.outcome.result import Result, Row

COLUMNS = (
    "cycle",
    "evictions",
    "refused",
    "over target",
    "below band",
    "cpu stddev",
    "mem stddev",
    "highest cpu",
    "highest mem",
    "noise",
    "Pending",
    "moved twice",
    "landed over",
    "empty",
)


def table(result: Result) -> str:
    """Return a trial's table, a line a cycle; percentages and points with one decimal."""
    lines = [_cells(row) for row in result.rows]
    widths = [max(map(len, column)) for column in zip(COLUMNS, *lines, strict=True)]
    return "\n".join(_aligned(line, widths) for line in (COLUMNS, *lines))


def _cells(row: Row) -> tuple[str, ...]:
    moved = (row.evictions, row.refused) if row.cycle else ("", "")
    points = (row.cpu_deviation, row.memory_deviation, row.highest_cpu, row.highest_memory, row.noise)
    return (
        "start" if row.cycle == 0 else str(row.cycle),
        *map(str, (*moved, row.over, row.below)),
        *(f"{value:.1f}" for value in points),
        *map(str, (row.pending, row.twice, row.landed_over, row.empty)),
    )


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
