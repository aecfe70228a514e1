"""Nodes before and after a plan, as short texts with figures: bands, spread, bars, and nodes that stay over target."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import pstdev
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from rebalancer.eviction.observation import APPROPRIATE, OVERUTILIZED, UNDERUTILIZED
from rebalancer.report.layout import bar, hanging, listed, wrapped

#: Titles of the rows.
COLUMNS = ("node", "until", "held")


def held_rows(report: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield a row for each node: its name, until when, and by whom."""
    for node in report["heldNodes"]:
        yield node["name"], node["until"], _by(node, dry_run=report["dryRun"])


def _by(node: Mapping[str, Any], *, dry_run: bool) -> str:
    if node["problem"]:
        return f"not held: {node['problem']}"
    if not node["byThisRun"]:
        return "by an earlier run"
    return "would be held" if dry_run else "by this run"


Report = Mapping[str, Any]
Row = Mapping[str, Any]

#: How many of the most used and of the least used nodes get bars.
_SHOWN = 10
#: The same for rows, where there is no terminal.
_ROWS = 20
#: How many nodes that stay over target are named, each with the reasons.
_NAMED = 5
_BANDS = ((OVERUTILIZED, "over target"), (APPROPRIATE, "between"), (UNDERUTILIZED, "under thresholds"))


@dataclass(frozen=True, slots=True)
class Bar:
    """The line of one node; with an empty name it stands for the nodes left out, and the text says how many."""

    name: str
    text: str
    state: str = ""
    state_after: str = ""


def bands(run: Row) -> list[tuple[str, int, int]]:
    """Return how many nodes are in each band, now and after the plan; `over target` needs targetThresholds."""
    shown = _BANDS if run["targetThresholds"] else _BANDS[1:]
    return [
        (words, *(sum(node[key] == state for node in run["nodes"]) for key in ("state", "stateAfter")))
        for state, words in shown
    ]


def spread_lines(run: Row) -> Iterator[tuple[str, str]]:
    """Yield for each resource with a threshold its standard deviation and its highest node, now and after the plan."""
    nodes = run["nodes"]
    for name in run["thresholds"]:
        now, then = (pstdev(node[key].get(name, 0.0) for node in nodes) for key in ("before", "after"))
        highest = " -> ".join(_highest(nodes, key, name) for key in ("before", "after"))
        yield name, f"standard deviation {now:.1f} -> {then:.1f} points, highest {highest}"


def bars(run: Row, width: int) -> Iterator[Bar]:
    """Yield the most and the least used nodes, the fullest first.

    Args:
        run: a strategy of the report that weighs nodes.
        width: of a bar.
    """
    ranked = sorted(run["nodes"], key=lambda node: (-_fullness(run, node), node["name"]))
    between = len(ranked) - 2 * _SHOWN
    for number, node in enumerate(ranked):
        if between > 0 and number == _SHOWN:
            yield Bar("", f"... {between} nodes between ...")
        if between <= 0 or not _SHOWN <= number < len(ranked) - _SHOWN:
            yield Bar(node["name"], _bar_text(run, node, width), node["state"], node["stateAfter"])


def staying_over(report: Report, run: Row) -> Iterator[tuple[str, str]]:
    """Yield the nodes that stay over target, with the reasons, the fullest first; only some are named."""
    over = [node for node in run["nodes"] if node["stateAfter"] == OVERUTILIZED]
    ranked = sorted(over, key=lambda node: (-_fullness(run, node, "after"), node["name"]))
    kept = _kept_by_node(report, run)
    for node in ranked[:_NAMED]:
        causes = listed((f"{count} by {by}" for by, count in kept.get(node["name"], Counter()).most_common()), _NAMED)
        yield node["name"], f"stays over target; {f'pods kept: {causes}' if causes else _why_none(report, run)}"
    if len(ranked) > _NAMED:
        yield f"{len(ranked) - _NAMED} more", "stay over target"


def node_columns(run: Row) -> tuple[str, ...]:
    """Return the titles of `node_rows`."""
    return ("node", *run["thresholds"], "state", "afterwards")


def node_rows(run: Row, *, everything: bool) -> list[tuple[str, ...]]:
    """Return a row for each node, the fullest first: what it uses now and after the plan, and its states.

    Of many nodes only the most and the least used have one, unless everything is asked for.
    """
    words = dict(_BANDS)
    ranked = sorted(run["nodes"], key=lambda node: (-_fullness(run, node), node["name"]))
    rows = [
        (
            node["name"],
            *(
                f"{node['before'].get(name, 0):.1f} % -> {node['after'].get(name, 0):.1f} %"
                for name in run["thresholds"]
            ),
            words[node["state"]],
            words[node["stateAfter"]],
        )
        for node in ranked
    ]
    between = 0 if everything else max(len(rows) - 2 * _ROWS, 0)
    if not between:
        return rows
    blank = [""] * (len(run["thresholds"]) + 2)
    return [*rows[:_ROWS], (f"... {between} nodes between (-v 1 lists each)", *blank), *rows[-_ROWS:]]


def _kept_by_node(report: Report, run: Row) -> Mapping[str, Counter[str]]:
    kept: dict[str, Counter[str]] = {}
    for each in report["refusals"]:
        if _same(each, run):
            kept.setdefault(each["node"], Counter())[each["by"]] += 1
    return kept


def _why_none(report: Report, run: Row) -> str:
    if run["obstacle"]:
        return str(run["summary"]).rpartition(": ")[2]
    if any(_same(each, run) and each["by"] == "TotalLimit" for each in report["refusals"]):
        return "the limit of the cycle was used up before"
    return "no pod of it that may go would help"


def _same(row: Row, run: Row) -> bool:
    return bool((row["profile"], row["strategy"]) == (run["profile"], run["strategy"]))


def _bounds(run: Row) -> Mapping[str, float]:
    bounds: Mapping[str, float] = run["targetThresholds"] or run["thresholds"]
    return bounds


def _deciding(run: Row, node: Row, key: str = "before") -> str:
    """Return the resource in which a node is furthest above its bound, or least below it."""
    bounds = _bounds(run)
    return max(sorted(bounds), key=lambda name: node[key].get(name, 0.0) - bounds[name])


def _fullness(run: Row, node: Row, key: str = "before") -> float:
    name = _deciding(run, node, key)
    return float(node[key].get(name, 0.0) - _bounds(run)[name])


def _bar_text(run: Row, node: Row, width: int) -> str:
    name = _deciding(run, node)
    now, then = node["before"].get(name, 0.0), node["after"].get(name, 0.0)
    word = "target" if run["targetThresholds"] else "threshold"
    pair = " -> ".join(f"{bar(percent, width)} {percent:3.0f} %" for percent in (now, then))
    size = max(map(len, _bounds(run)))
    return f"{name:<{size}} {pair}  {word} {_bounds(run)[name]:.0f} %"


def _highest(nodes: Sequence[Row], key: str, name: str) -> str:
    top = max(nodes, key=lambda node: node[key].get(name, 0.0))
    return f"{top['name']} {top[key].get(name, 0.0):.0f} %"


#: From how many columns on bars have so many characters.
_BARS = ((100, 20), (64, 10), (0, 0))
_INDENT = 2


def print_nodes(report: Mapping[str, Any], run: Mapping[str, Any], console: Console) -> None:
    """Print the nodes of a strategy that weighs them, now and after the plan."""
    console.print()
    for line in wrapped(f"Nodes now and after the plan ({run['strategy']})", console.width):
        console.print(Text(line, style="bold"))
    for words, now, then in bands(run):
        console.print(Text(f"  {now:>4} -> {then:>4} {words}"))
    _prose(console, list(spread_lines(run)))
    drawn = list(bars(run, next(size for width, size in _BARS if console.width >= width)))
    beside = max(_INDENT + cell_len(each.name) + 2 + cell_len(each.text) for each in drawn) <= console.width
    size = max(cell_len(each.name) for each in drawn)
    for each in drawn:
        _print_bar(each, size if beside else 0, console)
    _prose(console, list(staying_over(report, run)), "yellow")


def _prose(console: Console, rows: list[tuple[str, str]], style: str = "") -> None:
    for lines in hanging([row[:1] for row in rows], [row[1] for row in rows], console.width, _INDENT):
        for line in lines:
            console.print(Text(line, style=style), soft_wrap=True)


def _print_bar(drawn: Bar, size: int, console: Console) -> None:
    blank = " " * _INDENT
    if not drawn.name:
        text = blank + drawn.text
    elif size:
        text = f"{blank}{drawn.name}{' ' * (size - cell_len(drawn.name))}  {drawn.text}"
    else:
        text = f"{blank}{drawn.name}\n{blank}{blank}{drawn.text}"
    console.print(Text(text, style=_style(drawn)), soft_wrap=True)


def _style(drawn: Bar) -> str:
    if drawn.state_after == OVERUTILIZED:
        return "red"
    return "green" if drawn.state == OVERUTILIZED else ""
