"""What a strategy does to nodes, for people: bands, spread, a bar for each node, what stays over target, and waves."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from statistics import pstdev
from typing import Any

from rebalancer.eviction.observation import APPROPRIATE, OVERUTILIZED, UNDERUTILIZED
from rebalancer.eviction.steering import HOT
from rebalancer.report.layout import Page, bar, count, listed

Report = Mapping[str, Any]
Row = Mapping[str, Any]

#: How many of the most used and of the least used nodes are shown, unless all are asked for.
_SHOWN = 10
#: How many nodes that stay over target are named, each with the reasons.
_NAMED = 5
_BANDS = {OVERUTILIZED: "over target", APPROPRIATE: "between", UNDERUTILIZED: "under thresholds"}
#: From how many columns on bars have so many characters.
_BARS = ((100, 20), (64, 10), (0, 0))
_INDENT = 2


def show_nodes(report: Report, run: Row, page: Page, *, everything: bool) -> None:
    """Show the nodes of a strategy that weighs them, now and after the plan."""
    ranked = sorted(run["nodes"], key=lambda node: (-_fullness(run, node)[0], node["name"]))
    nodes = ranked if everything else [*ranked[:_SHOWN], *ranked[_SHOWN:][-_SHOWN:]]
    some = f", the {_SHOWN} most and the {_SHOWN} least used (-v 1 lists each)" if len(nodes) < len(ranked) else ""
    page.title(f"Nodes now and after the plan ({run['strategy']}){some}")
    for state, words in _BANDS.items():
        if run["targetThresholds"] or state != OVERUTILIZED:  # over target needs a target
            now, then = (sum(node[key] == state for node in ranked) for key in ("state", "stateAfter"))
            page.say(f"  {now:>4} -> {then:>4} {words}")
    _show_pairs(page, _spread(run))
    if page.is_plain:
        names = [(node["name"], *(_change_of(node, name) for name in run["thresholds"])) for node in nodes]
        states = [f"{_BANDS[node['state']]} -> {_BANDS[node['stateAfter']]}" for node in nodes]
        page.rows(names, states, indent=_INDENT)
    else:
        width = next(size for columns, size in _BARS if page.width >= columns)
        bars = [(node["name"], _bar_text(run, node, width)) for node in nodes]
        page.rows(bars, indent=_INDENT, style=list(map(_color, nodes)))
    _show_pairs(page, _staying_over(report, run), "yellow")


def _color(node: Row) -> str:
    return "red" if node["stateAfter"] == OVERUTILIZED else "green" if node["state"] == OVERUTILIZED else ""


def _show_pairs(page: Page, pairs: Iterator[tuple[str, str]], style: str = "") -> None:
    found = list(pairs)
    page.rows([(name,) for name, _ in found], [text for _, text in found], indent=_INDENT, style=style)


def _spread(run: Row) -> Iterator[tuple[str, str]]:
    """Yield for each resource with a threshold its standard deviation and its highest node, now and after the plan."""
    nodes = run["nodes"]
    for name in run["thresholds"]:
        now, then = (pstdev(node[key].get(name, 0.0) for node in nodes) for key in ("before", "after"))
        highest = " -> ".join(_highest(nodes, key, name) for key in ("before", "after"))
        yield name, f"standard deviation {now:.1f} -> {then:.1f} points, highest {highest}"


def _change_of(node: Row, resource: str) -> str:
    before, after = (f"{node[key].get(resource, 0):.1f} %" for key in ("before", "after"))
    return f"{resource} {before} -> {after}"


def _staying_over(report: Report, run: Row) -> Iterator[tuple[str, str]]:
    """Yield the nodes that stay over target, with the reasons, the fullest first; only some are named."""
    over = [node for node in run["nodes"] if node["stateAfter"] == OVERUTILIZED]
    ranked = sorted(over, key=lambda node: (-_fullness(run, node, "after")[0], node["name"]))
    kept: dict[str, Counter[str]] = {}
    for each in report["refusals"]:
        if _same(each, run):
            kept.setdefault(each["node"], Counter())[each["by"]] += 1
    for node in ranked[:_NAMED]:
        causes = listed((f"{count} by {by}" for by, count in kept.get(node["name"], Counter()).most_common()), _NAMED)
        yield node["name"], f"stays over target; {f'pods kept: {causes}' if causes else _why_none(report, run)}"
    if len(ranked) > _NAMED:
        yield f"{len(ranked) - _NAMED} more", "stay over target"


def _why_none(report: Report, run: Row) -> str:
    if run["obstacle"]:
        return str(run["summary"]).rpartition(": ")[2]
    if any(_same(each, run) and each["by"] == "TotalLimit" for each in report["refusals"]):
        return "the limit of the cycle was used up before"
    return "no pod of it that may go would help"


def _same(row: Row, run: Row) -> bool:
    return bool((row["profile"], row["strategy"]) == (run["profile"], run["strategy"]))


def _fullness(run: Row, node: Row, key: str = "before") -> tuple[float, str]:
    """Return how far a node is above its bound in the resource where that is most, and which resource that is."""
    gaps = ((node[key].get(name, 0.0) - bound, name) for name, bound in sorted(_bounds(run).items()))
    return max(gaps, key=itemgetter(0))


def _bounds(run: Row) -> Mapping[str, float]:
    bounds: Mapping[str, float] = run["targetThresholds"] or run["thresholds"]
    return bounds


def _bar_text(run: Row, node: Row, width: int) -> str:
    name = _fullness(run, node)[1]
    now, then = node["before"].get(name, 0.0), node["after"].get(name, 0.0)
    word = "target" if run["targetThresholds"] else "threshold"
    pair = " -> ".join(f"{bar(percent, width)} {percent:3.0f} %" for percent in (now, then))
    size = max(map(len, _bounds(run)))
    return f"{name:<{size}} {pair}  {word} {_bounds(run)[name]:.0f} %"


def _highest(nodes: Sequence[Row], key: str, name: str) -> str:
    top = max(nodes, key=lambda node: node[key].get(name, 0.0))
    return f"{top['name']} {top[key].get(name, 0.0):.0f} %"


def show_waves(run: Row, page: Page) -> None:
    """Show the waves of a steered strategy."""
    if not run.get("waves"):
        return
    page.title(f"Waves ({run['strategy']})")
    names, prose = [], []
    for number, wave in enumerate(run["waves"], start=1):
        names.append((f"{number:>2}", f"{len(wave['moves']):>2} pods to {_destinations(wave['moves'])}"))
        hot = sum(level >= HOT for level in wave["avoid"].values())
        avoided = count(len(wave["avoid"]), "node") if wave["avoid"] else "none"
        taints = f", {hot} with two taints" if hot else ""
        prose.append(f"avoiding {avoided}{taints}; {_landed(wave['moves'])}".rstrip("; "))
    page.rows(names, prose)


def _destinations(moves: Sequence[Row]) -> str:
    counts = Counter(move["expected"] for move in moves)
    return ", ".join(f"{name} ({count})" if len(counts) > 1 else name for name, count in sorted(counts.items()))


def _landed(moves: Sequence[Row]) -> str:
    seen = [move["landed"] for move in moves if move["landed"]]
    if not seen:
        return ""
    text = f"{sum(each['foreseen'] for each in seen)} of {len(seen)} as foreseen"
    ready = [each["readySeconds"] for each in seen if each["readySeconds"] is not None]
    return f"{text}, Ready in {max(ready):.0f} s" if ready else text
