"""The report for people: the most important first, grouped, and as wide as the terminal, which colours it.

Without a terminal it is the same text, but nothing wraps, and each pod has a line that names all about it.
"""

import os
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import IO, Literal, TypeVar

import click

from rebalancer.eviction.observation import OVERUTILIZED
from rebalancer.report.document import CLOCKS
from rebalancer.report.layout import Page, count, listed
from rebalancer.report.nodes import Report, Row, show_nodes, show_waves

Color = Literal["auto", "always", "never"]
Key = TypeVar("Key", bound=Hashable)

#: More evictions than this are counted by owner on a terminal instead of listed.
_LISTED = 60
_PODS_SHOWN = 3
#: Most namespaces and owners that the question names, and its words for the limits.
_MOST = 5
_LIMITS = {"total": "in all", "node": "from a node", "namespace": "from a namespace"}
_BAD, _WARN, _GOOD, _STRONG = "bold red", "yellow", "bold green", "bold"
#: Lists of a report that are counted only if they are not empty, each with its word.
_TROUBLE = (("unknown", "unknown"), ("failures", "failed"))


def lines(report: Report, stream: IO[str], *, everything: bool = False, color: Color = "auto") -> list[str]:
    """Return a report's lines for a stream, with `everything` each pod and node; `auto` colours on a terminal."""
    from rich.console import Console  # noqa: PLC0415  rich is slow to import, and JSON goes without it

    page = Page(Console(file=stream).width if stream.isatty() else None)
    _show(report, page, everything=everything)
    is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") in {"dumb", "unknown"}
    colored = color == "always" or (color == "auto" and stream.isatty() and not is_plain)
    return [_styled(text.rstrip(), style if colored else "") for text, style in page.lines]


def _styled(text: str, style: str) -> str:
    return (
        click.style(text, style.removeprefix("bold").strip() or None, bold="bold" in style or None) if style else text
    )


def _show(report: Report, page: Page, *, everything: bool) -> None:
    _show_head(report, page)
    _show_strategies(report, page)
    for run in report["strategies"]:
        if run["nodes"] and run["thresholds"]:
            show_nodes(report, run, page, everything=everything)
        show_waves(run, page)
    _show_held(report, page)
    _show_evictions(report, page, everything=everything)
    if doubts := report["unknown"]:
        page.title("Pods that may have gone")
        page.rows([_pod_columns(each) for each in doubts], [each["error"] for each in doubts], style=_BAD)
    _show_refusals(report["refusals"], page, everything=everything)
    _show_trouble(report, page)


def _show_head(report: Report, page: Page) -> None:
    if failed := _failures(report):
        page.prose(failed, _BAD)
    when = re.sub(r"\.\d+", "", report["now"])
    cluster = report["cluster"]
    where = cluster.get("file") or f"{cluster['context'] or 'this cluster'} ({cluster['server']})"
    title = f"{'Dry run' if report['dryRun'] else 'Live run'} on {where}"
    page.rows([(title,)], [f"at {when} ({CLOCKS[report['clock']]})"], style=_STRONG)
    for alarm in report["overview"]["alarms"]:
        page.prose(alarm, _WARN, mark="!")
    if report["skipped"]:
        page.prose(f"Nothing was done: {report['skipped']}", _WARN)
    else:
        page.prose(_summary(report), _GOOD if report["evictions"] else _STRONG)


def _failures(report: Report) -> str:
    """Return what failed, like `FAILED: 1 of 3 strategies (PodLifeTime: no answer)`; empty if nothing did."""
    failed = [run for run in report["strategies"] if run["error"]]
    parts = []
    if failed:
        causes = "; ".join(dict.fromkeys(f"{run['strategy']}: {run['error']}" for run in failed))
        parts.append(f"{len(failed)} of {_strategies(len(report['strategies']))} ({causes})")
    if report["failures"]:
        errors = dict.fromkeys(each["error"] for each in report["failures"])
        parts.append(f"{count(len(report['failures']), 'eviction')} ({listed(errors, 1)})")
    return f"FAILED: {', '.join(parts)}" if parts else ""


def _summary(report: Report) -> str:
    runs, nodes = report["strategies"], report["nodes"]
    if runs and all(run["error"] for run in runs) and not report["evictions"]:
        return f"No strategy could look at the cluster; nothing {'would be' if report['dryRun'] else 'was'} evicted"
    verb = "would be evicted" if report["dryRun"] else "evicted"
    parts = [f"{count(len(report['evictions']), 'pod')} {verb}", f"{len(report['refusals'])} refused"]
    if failed := sum(1 for run in runs if run["error"]):
        parts.append(f"{_strategies(failed)} failed")
    parts += [f"{len(report[key])} {word}" for key, word in _TROUBLE if report.get(key)]
    return f"{', '.join(parts)}; {nodes['considered']} of {nodes['total']} nodes considered"


def _strategies(number: int) -> str:
    return f"{number} {'strategy' if number == 1 else 'strategies'}"


def _show_strategies(report: Report, page: Page) -> None:
    runs = report["strategies"]
    if not runs:
        return
    page.title("By strategy")
    keys = ("evicted", *(["unknown"] if report["unknown"] else []), "refused")
    width = max(len(str(run[key])) for run in runs for key in keys)
    several = len({run["profile"] for run in runs}) > 1
    names = [
        (*([run["profile"]] if several else []), run["strategy"], *(f"{run[key]:>{width}} {key}" for key in keys))
        for run in runs
    ]
    looked_at = [f"FAILED: {run['error']}" if run["error"] else run["summary"] for run in runs]
    page.rows(names, looked_at, style=[_BAD if run["error"] else "" for run in runs])


def _show_held(report: Report, page: Page) -> None:
    by = "would be held" if report["dryRun"] else "by this run"

    def says(node: Row) -> str:
        return f"not held: {node['problem']}" if node["problem"] else by if node["byThisRun"] else "by an earlier run"

    if held := report["heldNodes"]:
        page.title("Nodes kept empty")
        page.rows([(node["name"], f"until {node['until']}") for node in held], list(map(says, held)))


def _grouped(rows: Iterable[Row], key: Callable[[Row], Key]) -> dict[Key, list[Row]]:
    found: dict[Key, list[Row]] = {}
    for each in rows:
        found.setdefault(key(each), []).append(each)
    return found


def _show_evictions(report: Report, page: Page, *, everything: bool) -> None:
    evictions = report["evictions"]
    if not evictions:
        return
    in_full = everything or page.is_plain or len(evictions) <= _LISTED
    title = "Pods that go" if report["dryRun"] else "Pods that went"
    page.title(title + ("" if in_full else " (-v 1 or --output wide lists each)"))
    if page.is_plain:
        page.rows(list(map(_pod_columns, evictions)), list(map(_why, evictions)))
        return
    for (_, strategy), pods in _grouped(evictions, lambda each: (each["profile"], each["strategy"])).items():
        page.say(f"{strategy}: {count(len(pods), 'pod')}", _STRONG)
        _show_owners(pods, page, in_full=in_full)


def _show_owners(evictions: Sequence[Row], page: Page, *, in_full: bool) -> None:
    by_owner = _grouped(evictions, lambda each: (each["namespace"], _owner_name(each) or "no owner"))
    ranked = sorted(by_owner.items(), key=lambda each: (-len(each[1]), each[0]))
    if not in_full:
        nodes = [f"from {listed(dict.fromkeys(pod['node'] for pod in pods), _PODS_SHOWN)}" for _, pods in ranked]
        page.rows([(f"{len(pods):>5}", *owner) for owner, pods in ranked], nodes)
        return
    for owner, pods in ranked:
        page.say(f"  {', '.join(owner)}: {count(len(pods), 'pod')}")
        page.rows([(pod["name"], pod["node"]) for pod in pods], list(map(_why, pods)), indent=4)


def _pod_columns(row: Row) -> tuple[str, str, str, str]:
    return _pod_name(row), row["node"], _owner_name(row), row["strategy"]


def _why(row: Row) -> str:
    return f"{row['reason']} (another controller moves it)" if row["background"] else str(row["reason"])


def _pod_name(row: Row) -> str:
    return f"{row['namespace']}/{row['name']}"


def _owner_name(row: Row) -> str:
    owner = row["owner"]
    return f"{owner['kind']}/{owner['name']}" if owner else ""


def _show_refusals(refusals: Sequence[Row], page: Page, *, everything: bool) -> None:
    if not refusals:
        return
    if everything:
        page.title("Considered but kept")
        names = [(_pod_name(each), each["node"], each["by"], each["strategy"]) for each in refusals]
        page.rows(names, [each["reason"] for each in refusals])
        return
    page.title("Considered but kept (-v 1 lists each)")
    causes = _grouped(refusals, lambda each: (each["by"], each["strategy"]))
    page.rows([(f"{len(pods):>5}", *cause) for cause, pods in causes.items()], list(map(_example, causes.values())))


def _example(pods: Sequence[Row]) -> str:
    """Return the commonest reason of these refusals, and the first pods that have it."""
    by_reason = _grouped(pods, lambda each: each["reason"])
    reason, alike = max(by_reason.items(), key=lambda each: len(each[1]))
    others = f"; {count(len(by_reason) - 1, 'more reason')}" if len(by_reason) > 1 else ""
    return f"{reason} ({listed(map(_pod_name, alike), _PODS_SHOWN)}{others})"


def _show_trouble(report: Report, page: Page) -> None:
    warnings = [each for each in report["warnings"] if each not in report["overview"]["alarms"]]
    if report["failures"] or warnings:
        page.say("")
    for each in report["failures"]:
        page.prose(f"{_pod_name(each)} on {each['node']} ({each['strategy']}): {each['error']}", _BAD, mark="Failed:")
    for warning in warnings:
        page.prose(warning, _WARN, mark="Warning:")


def question_lines(report: Report) -> Iterator[tuple[str, str]]:
    """Yield what an operator wants to know of a plan before a live run, each line as its label and its text."""
    overview = report["overview"]
    if failed := _failures(report):
        yield "!", failed
    for alarm in overview["alarms"]:
        yield "!", alarm
    yield "pods", f"{overview['pods']['evicted']} of {overview['pods']['total']} would be evicted"
    if overview["namespaces"]:
        yield "namespaces", listed((f"{each['name']} {_lost(each)}" for each in overview["namespaces"]), _MOST)
    if overview["owners"]:
        losing = (
            f"{each['namespace']}/{each['kind']}/{each['name']}{'' if each['pdb'] else ' (no PDB)'} {_lost(each)}"
            for each in overview["owners"]
        )
        yield "owners", listed(losing, _MOST)
    limits = overview["limits"]
    given = [f"{limits[key]} {words}" for key, words in _LIMITS.items() if limits[key] is not None]
    yield "limits", ", ".join(given) or "none"
    for run in report["strategies"]:
        if nodes := run["nodes"]:
            now, then = (sum(node[key] == OVERUTILIZED for node in nodes) for key in ("state", "stateAfter"))
            yield "nodes", f"{run['strategy']}: {count(now, 'node')} over target now, {then or 'none'} afterwards"
    for warning in report["warnings"]:
        yield "warning", warning


def _lost(share: Row) -> str:
    percent = f" ({share['evicted'] * 100 // share['total']} %)" if share["total"] else ""
    return f"{share['evicted']} of {share['total']}{percent}"


def move_lines(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the pods that would be evicted: where each is, and why, with where it lands."""
    for each in report["evictions"]:
        yield _pod_name(each), f"on {each['node']}, by {each['strategy']}: {each['reason']}"


def new_pods(report: Report, shown: frozenset[str]) -> list[str]:
    """Return the pods of a plan whose UIDs are not among those that were shown before, as `namespace/name`."""
    return [_pod_name(each) for each in report["evictions"] if each["uid"] not in shown]
