"""What a cluster would look like with other requests: as lines below the table, and as a document."""

from collections.abc import Mapping
from typing import Any

from rebalancer.recommendation.what_if import ClusterOutlook, PodKey, WhatIf
from rebalancer.report.layout import count, hanging, listed, wrapped
from rebalancer.untrusted.printable import printable

_MOST_NAMES = 10
_MOST_REASONS = 3
_NOTHING = "-"


def what_if_lines(found: WhatIf, width: int) -> list[str]:
    """Return a small table, and sentences on what does not fit and what is not known."""
    outlooks = (found.now, found.today, found.recommended)
    rows: list[tuple[str, ...]] = [("WHAT IF", "AS IT IS", "TODAY'S REQUESTS", "RECOMMENDED")]
    for name in found.now.loads:
        loads = [each.loads[name] for each in outlooks]
        rows.append((f"{name}: standard deviation", *(_deviation(each, name) for each in outlooks)))
        rows.append((f"{name}: highest node", *(f"{each.highest:.0f} % ({printable(each.node)})" for each in loads)))
    rows.append(("nodes needed", _NOTHING, *(_needed(each, found) for each in outlooks[1:])))
    rows.append(("pods that fit nowhere", _NOTHING, *(str(len(each.nowhere)) for each in outlooks[1:])))
    placed = f"{count(found.pods, 'pod')} placed anew on {count(found.nodes, 'node')}"
    said = [f"What if: {placed}. Loads are what pods used in the peak hours."]
    if found.no_longer:
        names = listed((f"{_name(pod)} ({why})" for pod, why in sorted(found.no_longer.items())), _MOST_NAMES)
        said.append(f"{count(len(found.no_longer), 'pod')} would no longer fit: {printable(names)}")
    if found.unmeasured:
        said.append(f"{count(found.unmeasured, 'pod')} without a measurement: counted as using nothing.")
    if found.stayed:
        reasons = printable(listed(sorted(set(found.stayed.values())), _MOST_REASONS))
        said.append(
            f"{count(len(found.stayed), 'pod')} left in place, since it is unknown where they would go: {reasons}"
        )
    table = [line for row in hanging(rows, [""] * len(rows), width) for line in row]
    return ["", *table, *(line for each in said for line in wrapped(each, width))]


def what_if_document(found: WhatIf) -> dict[str, Any]:
    """Return the same with all figures and all names."""
    return {
        "nodes": found.nodes,
        "pods": found.pods,
        "unmeasuredPods": found.unmeasured,
        "leftInPlace": _nowhere(found.stayed),
        "asItIs": _loads(found.now),
        "todaysRequests": _outlook(found.today),
        "recommended": _outlook(found.recommended),
        "noLongerFit": _nowhere(found.no_longer),
    }


def _deviation(outlook: ClusterOutlook, name: str) -> str:
    least, most = outlook.least[name], outlook.most[name]
    span = f" ({least:.1f} to {most:.1f})" if f"{least:.1f}" != f"{most:.1f}" else ""
    return f"{outlook.loads[name].deviation:.1f} points{span}"


def _needed(outlook: ClusterOutlook, found: WhatIf) -> str:
    return f"{outlook.needed} of {found.nodes}" if not outlook.nowhere else f"more than {found.nodes}"


def _outlook(outlook: ClusterOutlook) -> dict[str, Any]:
    nowhere = _nowhere(outlook.nowhere)
    return {**_loads(outlook), "nodesNeeded": None if nowhere else outlook.needed, "fitNowhere": nowhere}


def _loads(outlook: ClusterOutlook) -> dict[str, Any]:
    return {
        name: {
            "standardDeviation": round(load.deviation, 2),
            "lowestDeviation": round(outlook.least[name], 2),
            "highestDeviation": round(outlook.most[name], 2),
            "highestPercent": round(load.highest, 2),
            "highestNode": printable(load.node),
        }
        for name, load in outlook.loads.items()
    }


def _nowhere(pods: Mapping[PodKey, str]) -> list[dict[str, str]]:
    return [{"pod": printable(_name(pod)), "why": printable(why)} for pod, why in sorted(pods.items())]


def _name(pod: PodKey) -> str:
    return "/".join(pod)
