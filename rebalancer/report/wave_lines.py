"""Waves as rows of a table for people."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from rebalancer.eviction.steering import HOT

Run = Mapping[str, Any]
_DECIMALS = 1

#: Titles of the rows.
COLUMNS = ("wave", "pods", "to", "avoided", "landed")


def wave_rows(run: Run) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield a row for each wave: number, pods, destinations, avoided nodes, and how many landed as foreseen."""
    for number, wave in enumerate(run.get("waves") or (), start=1):
        moves = wave["moves"]
        yield str(number), str(len(moves)), _destinations(moves), _avoided(wave["avoid"]), _landed(moves)


def evenness_lines(run: Run) -> Iterator[str]:
    """Yield how the waves change the nodes: deviation and highest node for each resource, and nodes over target."""
    evenness = run.get("evenness")
    if not evenness:
        return
    for name in evenness["deviation"]:
        deviation, highest = (_change(evenness[key][name]) for key in ("deviation", "highest"))
        yield f"{name}: standard deviation {deviation}, highest node {highest} %"
    yield f"nodes over target: {_change(evenness['nodesOverTarget'])}"


def _change(states: Mapping[str, float | None]) -> str:
    """Return a figure before and as foreseen, and as it is in the end if that differs."""
    foreseen, after = states["foreseen"], states["after"]
    text = f"{_number(states['before'])} -> {_number(foreseen)}"
    return text if after is None or after == foreseen else f"{text} foreseen, {_number(after)} in the end"


def _number(value: float | None) -> str:
    return "?" if value is None else f"{round(value, _DECIMALS):g}"


def _destinations(moves: list[dict[str, Any]]) -> str:
    counts = Counter(move["expected"] for move in moves)
    return ", ".join(f"{name} ({count})" if len(counts) > 1 else name for name, count in sorted(counts.items()))


def _avoided(avoid: Mapping[str, int]) -> str:
    if not avoid:
        return "none"
    hot = sum(level >= HOT for level in avoid.values())
    nodes = "1 node" if len(avoid) == 1 else f"{len(avoid)} nodes"
    return f"{nodes}, {hot} with two taints" if hot else nodes


def _landed(moves: list[dict[str, Any]]) -> str:
    seen = [move["landed"] for move in moves if move["landed"]]
    if not seen:
        return ""
    text = f"{sum(each['foreseen'] for each in seen)} of {len(seen)} as foreseen"
    ready = [each["readySeconds"] for each in seen if each["readySeconds"] is not None]
    return f"{text}, Ready in {max(ready):.0f} s" if ready else text
