"""A report in a line or two: failures first, then alarms, then counts."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rebalancer.report.document import CLOCKS
from rebalancer.report.layout import listed

Report = Mapping[str, Any]

_FRACTION = r"\.\d+"
#: Lists of a report that are counted only if they are not empty, each with its word.
_TROUBLE = (("unknown", "unknown"), ("failures", "failed"))


def count(number: int, noun: str) -> str:
    """Return a number with its noun, like `1 pod`, `2 pods` and `no pods`."""
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def failures(report: Report) -> str:
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


def run_title(report: Report) -> str:
    """Return what a report is about, like `Dry run on staging (https://10.0.0.1)`."""
    cluster = report["cluster"]
    where = cluster.get("file") or f"{cluster['context'] or 'this cluster'} ({cluster['server']})"
    return f"{'Dry run' if report['dryRun'] else 'Live run'} on {where}"


def pod_name(row: Mapping[str, Any]) -> str:
    """Return a pod like `shop/web-1`."""
    return f"{row['namespace']}/{row['name']}"


def owner_name(row: Mapping[str, Any]) -> str:
    """Return the owner of a pod like `ReplicaSet/web-5f6b`, empty for a pod without one."""
    owner = row["owner"]
    return f"{owner['kind']}/{owner['name']}" if owner else ""


def when(report: Report) -> str:
    """Return the time of the cycle to the second, and where it comes from."""
    return f"at {re.sub(_FRACTION, '', report['now'])} ({CLOCKS[report['clock']]})"


def summary(report: Report) -> str:
    """Return how many pods go, stay and failed, and how many nodes were looked at."""
    runs, nodes = report["strategies"], report["nodes"]
    if runs and all(run["error"] for run in runs) and not report["evictions"]:
        return f"No strategy could look at the cluster; nothing {'would be' if report['dryRun'] else 'was'} evicted"
    verb = "would be evicted" if report["dryRun"] else "evicted"
    parts = [f"{count(len(report['evictions']), 'pod')} {verb}", f"{len(report['refusals'])} refused"]
    if failed := sum(1 for run in runs if run["error"]):
        parts.append(f"{_strategies(failed)} failed")
    parts += [f"{len(report[key])} {word}" for key, word in _TROUBLE if report.get(key)]
    return f"{', '.join(parts)}; {nodes['considered']} of {nodes['total']} nodes considered"


def calls(report: Report) -> Iterator[str]:
    """Yield what must not be overlooked: failures, then alarms about the size of the plan."""
    if failed := failures(report):
        yield failed
    yield from report["overview"]["alarms"]


def pods_title(report: Report) -> str:
    """Return the title above the pods that would go, or went."""
    return "Pods that go" if report["dryRun"] else "Pods that went"


def other_warnings(report: Report) -> list[str]:
    """Return the warnings, except those that are shown at the top."""
    return [warning for warning in report["warnings"] if warning not in report["overview"]["alarms"]]


def looked_at(run: Mapping[str, Any]) -> str:
    """Return what a strategy looked at, or why it failed."""
    return f"FAILED: {run['error']}" if run["error"] else str(run["summary"])


def _strategies(number: int) -> str:
    return f"{number} {'strategy' if number == 1 else 'strategies'}"
