"""The report on a terminal: the most important first, grouped, as wide as the terminal is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from rebalancer.report.headline import (
    count,
    failures,
    looked_at,
    other_warnings,
    owner_name,
    pod_name,
    pods_title,
    run_title,
    summary,
    when,
)
from rebalancer.report.layout import hanging, listed
from rebalancer.report.nodes import held_rows, print_nodes
from rebalancer.report.wave_lines import evenness_lines, wave_rows

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OwnerGroup:
    """Pods of one owner that one strategy evicts, in their order; `owner` is empty for pods without one."""

    namespace: str
    owner: str
    pods: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class StrategyGroup:
    """What one strategy of one profile evicts."""

    profile: str
    strategy: str
    owners: tuple[OwnerGroup, ...]

    @property
    def count(self) -> int:
        """How many pods."""
        return sum(len(group.pods) for group in self.owners)


def grouped(evictions: Iterable[Row]) -> tuple[StrategyGroup, ...]:
    """Return the evictions by strategy, in the order of their first pods; in each, the owner that loses most first."""
    found: dict[tuple[str, str], dict[tuple[str, str], list[Row]]] = {}
    for each in evictions:
        owners = found.setdefault((each["profile"], each["strategy"]), {})
        owners.setdefault((each["namespace"], owner_name(each)), []).append(each)
    return tuple(StrategyGroup(*key, _by_size(owners)) for key, owners in found.items())


def _by_size(owners: Mapping[tuple[str, str], list[Row]]) -> tuple[OwnerGroup, ...]:
    ranked = sorted(owners.items(), key=lambda each: (-len(each[1]), each[0]))
    return tuple(OwnerGroup(*key, tuple(pods)) for key, pods in ranked)


Report = Mapping[str, Any]
#: More evictions than this are counted by owner instead of listed.
_LISTED = 60
_PODS_SHOWN = 3
_BAD, _WARN, _GOOD, _STRONG = "bold red", "yellow", "bold green", "bold"


def print_terminal(report: Report, console: Console, *, everything: bool = False) -> None:
    """Print a report.

    Args:
        report: as `rebalancer.report.document` makes it, safe to show.
        console: knows width and colours.
        everything: list every pod, however many they are.
    """
    _print_head(report, console)
    _print_strategies(report["strategies"], console)
    for run in report["strategies"]:
        if run["nodes"] and run["thresholds"]:
            print_nodes(report, run, console)
        _print_waves(run, console)
    _print_held(report, console)
    _print_evictions(report, console, everything=everything)
    _print_refusals(report["refusals"], console, everything=everything)
    _print_trouble(report, console)


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(Text(text, style=style), soft_wrap=True)


def _title(console: Console, text: str) -> None:
    console.print()
    _say(console, text, _STRONG)


def _rows(
    console: Console,
    columns: Sequence[Sequence[str]],
    prose: Sequence[str],
    indent: int = 0,
    style: str | Sequence[str] = "",
) -> None:
    """Print rows of names with prose; `style` is one for all rows, or one for each row."""
    styles = [style] * len(columns) if isinstance(style, str) else style
    for lines, each in zip(hanging(columns, prose, console.width, indent), styles, strict=True):
        for line in lines:
            _say(console, line, each)


def _print_head(report: Report, console: Console) -> None:
    if failed := failures(report):
        _rows(console, [()], [failed], style=_BAD)
    _rows(console, [(run_title(report),)], [when(report)], style=_STRONG)
    for alarm in report["overview"]["alarms"]:
        _rows(console, [("!",)], [alarm], style=_WARN)
    if report["skipped"]:
        _rows(console, [("Nothing was done:",)], [report["skipped"]], style=_WARN)
        return
    _rows(console, [()], [summary(report)], style=_GOOD if report["evictions"] else _STRONG)


def _print_strategies(runs: Sequence[Row], console: Console) -> None:
    if not runs:
        return
    _title(console, "By strategy")
    width = max(len(str(run[key])) for run in runs for key in ("evicted", "refused"))
    names = [
        (run["strategy"], f"{run['evicted']:>{width}} evicted", f"{run['refused']:>{width}} refused") for run in runs
    ]
    _rows(console, names, [looked_at(run) for run in runs], style=[_BAD if run["error"] else "" for run in runs])


def _print_waves(run: Row, console: Console) -> None:
    found = list(wave_rows(run))
    if found:
        _title(console, f"Waves ({run['strategy']})")
        names = [(f"{number:>2}", f"{pods:>2} pods to {to}") for number, pods, to, _, _ in found]
        _rows(console, names, [f"avoiding {avoided}; {landed}".rstrip("; ") for *_, avoided, landed in found])
        for line in evenness_lines(run):
            _rows(console, [()], [line])


def _print_held(report: Report, console: Console) -> None:
    if rows := list(held_rows(report)):
        _title(console, "Nodes kept empty")
        _rows(console, [(node, f"until {until}") for node, until, _ in rows], [by for *_, by in rows])


def _print_evictions(report: Report, console: Console, *, everything: bool) -> None:
    evictions = report["evictions"]
    if not evictions:
        return
    in_full = everything or len(evictions) <= _LISTED
    _title(console, pods_title(report) + ("" if in_full else " (-v 1 or --output wide lists each)"))
    for strategy in grouped(evictions):
        _print_group(strategy, console, in_full=in_full)


def _print_group(strategy: StrategyGroup, console: Console, *, in_full: bool) -> None:
    _say(console, f"{strategy.strategy}: {count(strategy.count, 'pod')}", _STRONG)
    if not in_full:
        totals = [(f"{len(each.pods):>5}", each.namespace, each.owner or "no owner") for each in strategy.owners]
        _rows(console, totals, [f"from {_nodes_of(each)}" for each in strategy.owners])
        return
    for owner in strategy.owners:
        _say(console, f"  {owner.namespace}, {owner.owner or 'no owner'}: {count(len(owner.pods), 'pod')}")
        names = [(pod["name"], pod["node"]) for pod in owner.pods]
        _rows(console, names, [pod["reason"] for pod in owner.pods], 4)


def _nodes_of(owner: OwnerGroup) -> str:
    return listed(dict.fromkeys(pod["node"] for pod in owner.pods), _PODS_SHOWN)


def _print_refusals(refusals: Sequence[Row], console: Console, *, everything: bool) -> None:
    if not refusals:
        return
    title = "Considered but kept"
    if everything:
        _title(console, title)
        full = [(pod_name(each), each["node"], each["by"]) for each in refusals]
        _rows(console, full, [each["reason"] for each in refusals])
        return
    _title(console, f"{title} (-v 1 lists each)")
    causes: dict[tuple[str, str], list[Row]] = {}
    for each in refusals:
        causes.setdefault((each["strategy"], each["by"]), []).append(each)
    names = [(f"{len(pods):>5}", by, strategy) for (strategy, by), pods in causes.items()]
    _rows(console, names, [_example(pods) for pods in causes.values()])


def _example(pods: Sequence[Row]) -> str:
    """Return the commonest reason of these refusals, and the first pods that have it."""
    by_reason: dict[str, list[str]] = {}
    for each in pods:
        by_reason.setdefault(each["reason"], []).append(pod_name(each))
    reason, names = max(by_reason.items(), key=lambda each: len(each[1]))
    others = f"; {count(len(by_reason) - 1, 'more reason')}" if len(by_reason) > 1 else ""
    return f"{reason} ({listed(names, _PODS_SHOWN)}{others})"


def _print_trouble(report: Report, console: Console) -> None:
    trouble = [
        *(("Unknown:", each, each["error"]) for each in report["unknown"]),
        *(("Failed:", each, each["error"]) for each in report["failures"]),
    ]
    warnings = other_warnings(report)
    if trouble or warnings:
        console.print()
    rows = [(word, pod_name(each), each["node"]) for word, each, _ in trouble]
    _rows(console, rows, [text for _, _, text in trouble], style=_BAD)
    _rows(console, [("Warning:",)] * len(warnings), warnings, style=_WARN)
