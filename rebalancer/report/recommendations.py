"""Recommendations as a table, JSON, YAML or CSV."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import Any

import yaml

from rebalancer.recommendation.findings import Neighbours, Recommendations
from rebalancer.recommendation.rules import MEBI
from rebalancer.recommendation.what_if import ClusterOutlook, PodKey, WhatIf
from rebalancer.recommendation.workloads import Recommendation, Workload
from rebalancer.report.layout import count, hanging, listed, table, wrapped
from rebalancer.untrusted.printable import printable

_AMOUNTS = ("cpuRequest", "cpuLimit", "memoryRequest", "memoryLimit")
_HEADINGS = ("NAMESPACE", "WORKLOAD", "CONTAINER", "CPU REQUEST", "CPU LIMIT", "MEMORY REQUEST", "MEMORY LIMIT", "SURE")
_NOTHING = "-"
_MOST_PAIRS = 10
_MOST_NODES = 5
#: Names of pods, and reasons, in a sentence of `--what-if`.
_MOST_PODS, _MOST_REASONS = 10, 3


def as_text(findings: Recommendations, output: str, width: int) -> str:
    """Return what was found out in a shape: table, json, yaml or csv; a table is as wide as `width`."""
    found = findings.recommendations
    if output == "table":
        more = _what_if_lines(findings.what_if, width) if findings.what_if else []
        return "\n".join([*_table(findings, width), *_neighbour_lines(findings.neighbours), *more]) + "\n"
    documents = [_document(each, findings.qos) for each in found]
    if output == "csv":
        return _csv(documents)
    whole: dict[str, Any] = {"kind": "Recommendations", "containers": documents, "totals": totals(found)}
    if findings.neighbours:
        whole["heavyNeighbours"] = [_neighbours(each) for each in findings.neighbours]
    if findings.what_if:
        whole["whatIf"] = _what_if(findings.what_if)
    if output == "yaml":
        return yaml.safe_dump(whole, sort_keys=False, allow_unicode=True)
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def totals(found: Sequence[Recommendation]) -> list[dict[str, Any]]:
    """Return what all requests change by, in millicores and bytes, for each namespace, and then for all of them.

    Less is freed, more is missing.  Only containers that should change and are in the cluster file count, with all pods
    of their workload.
    """
    sums: dict[str, list[int]] = {}
    for each in found:
        now, change = each.history.now, each.change
        if now is None:
            continue
        changes = sums.setdefault(printable(each.history.workload.namespace), [0, 0])
        if change and change.cpu_request is not None:
            changes[0] += each.history.replicas * (change.cpu_request - (now.cpu_request or 0))
        if change and change.memory_request is not None:
            changes[1] += each.history.replicas * (change.memory_request - (now.memory_request or 0))
    every = [sum(cpu for cpu, _ in sums.values()), sum(memory for _, memory in sums.values())]
    rows: list[tuple[str | None, list[int]]] = [*sorted(sums.items()), *([(None, every)] if sums else [])]
    return [{"namespace": name, "cpuMilli": cpu, "memoryBytes": memory} for name, (cpu, memory) in rows]


def _document(each: Recommendation, qos: Mapping[Workload, tuple[str, str]]) -> dict[str, Any]:
    workload = each.history.workload
    classes = qos.get(workload)
    return {
        "namespace": printable(workload.namespace),
        "kind": workload.kind,
        "name": printable(workload.name),
        "container": printable(each.history.container),
        "now": _amounts(each.history.now),
        "recommended": _amounts(each.need),
        "change": _differences(each),
        "qosClass": dict(zip(("now", "recommended"), classes, strict=True)) if classes else None,
        "replicas": each.history.replicas,
        "fine": each.fine,
        "why": each.why,
        "remarks": list(map(printable, each.remarks)),
        "days": each.days,
        "samples": len(each.history.samples),
        "confidence": each.confidence,
    }


def _differences(each: Recommendation) -> dict[str, str] | None:
    """Return by how much amounts change that are set today and should change: `+100m`."""
    now, wanted = each.history.now, each.change
    if now is None or wanted is None:
        return None
    return {
        name: ("+" if new >= old else "-") + _quantity(name, abs(new - old))
        for name, old, new in zip(_AMOUNTS, astuple(now), astuple(wanted), strict=True)
        if None not in (old, new)
    }


def _amounts(of: Any) -> dict[str, str | None] | None:
    """Return the four amounts of a Need or a Now as quantities."""
    if of is None:
        return None
    values = (of.cpu_request, of.cpu_limit, of.memory_request, of.memory_limit)
    pairs = zip(_AMOUNTS, values, strict=True)
    return {name: None if value is None else _quantity(name, value) for name, value in pairs}


def _quantity(name: str, value: int) -> str:
    if name.startswith("cpu"):
        return f"{value}m"
    return str(value) if value % MEBI else f"{value // MEBI}Mi"


def _csv(documents: Sequence[dict[str, Any]]) -> str:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    plain = ("namespace", "kind", "name", "container")
    rest = ("replicas", "fine", "confidence", "days", "samples", "why")
    amounts = [(part, name) for part in ("now", "recommended", "change") for name in _AMOUNTS]
    amounts += [("qosClass", part) for part in ("now", "recommended")]
    rows.writerow([*plain, *(f"{part} {name}" for part, name in amounts), *rest, "remarks"])
    for each in documents:
        cells = [(each[part] or {}).get(name) or "" for part, name in amounts]
        rows.writerow([*(each[key] for key in plain), *cells, *(each[key] for key in rest), "; ".join(each["remarks"])])
    return text.getvalue()


def _table(findings: Recommendations, width: int) -> list[str]:
    found = findings.recommendations
    columns: list[tuple[str, ...]] = [_HEADINGS]
    prose = ["WHY"]
    for each in found:
        document = _document(each, findings.qos)
        names = (document["namespace"], f"{document['kind']}/{document['name']}", document["container"])
        cells = (_change(document["now"], document["recommended"], name) for name in _AMOUNTS)
        columns.append((*names, *cells, each.confidence))
        before, after = findings.qos.get(each.history.workload, ("", ""))
        qos = [f"{before} becomes {after}"] if before != after else []
        prose.append(printable("; ".join(["fine" if each.fine else each.why, *each.remarks, *qos])))
    return [*(line for row in hanging(columns, prose, width) for line in row), *_total_lines(found)]


def _neighbour_lines(found: Sequence[Neighbours]) -> list[str]:
    """Return a line for each pair, and below it what goes under `affinity:` in the first one's template."""
    if not found:
        return []
    lines = ["", "HEAVY WORKLOADS THAT SHARE NODES, and what goes under `affinity:` of the first to part them"]
    for each in found[:_MOST_PAIRS]:
        document = _neighbours(each)
        first, other = document["workloads"]
        pair = f"{first} with itself" if each.first == each.other else f"{first} and {other}"
        lines += [f"{pair}: {listed(document['nodes'], _MOST_NODES)}"]
        lines += [f"  {json.dumps(each.affinity)}" if each.affinity else "  give the pods of the second a label first"]
    more = len(found) - _MOST_PAIRS
    return [*lines, f"and {more} more; -o json has all"] if more > 0 else lines


def _neighbours(each: Neighbours) -> dict[str, Any]:
    names = [printable("/".join(workload)) for workload in (each.first, each.other)]
    return {"workloads": names, "nodes": list(map(printable, each.nodes)), "affinity": each.affinity}


def _change(now: dict[str, str | None] | None, wanted: dict[str, str | None] | None, name: str) -> str:
    """Return `100m > 250m`; the new amount alone where the cluster was not looked at or nothing changes."""
    new = (wanted or {}).get(name) or _NOTHING
    old = (now or {}).get(name) or _NOTHING
    return new if now is None or wanted is None or old == new else f"{old} > {new}"


def _total_lines(found: Sequence[Recommendation]) -> list[str]:
    return [
        f"Requests in {each['namespace'] or 'all'}: "
        f"cpu {_freed(each['cpuMilli'], 'm')}, memory {_freed(each['memoryBytes'] // MEBI, 'Mi')}"
        for each in totals(found)
    ]


def _freed(change: int, unit: str) -> str:
    return f"{-change}{unit} freed" if change < 0 else f"{change}{unit} missing" if change else "as it is"


def _what_if_lines(found: WhatIf, width: int) -> list[str]:
    """Return a small table, and sentences on what does not fit and what is not known."""
    outlooks = (found.now, found.today, found.recommended)
    rows: list[tuple[str, ...]] = [("WHAT IF", "AS IT IS", "TODAY'S REQUESTS", "RECOMMENDED")]
    for name in found.now.loads:
        loads = [each.loads[name] for each in outlooks]
        rows.append((f"{name}: standard deviation", *(_spread(each, name) for each in outlooks)))
        rows.append((f"{name}: highest node", *(f"{each.highest:.0f} % ({printable(each.node)})" for each in loads)))
    rows.append(("nodes needed", _NOTHING, *(_needed(each, found) for each in outlooks[1:])))
    rows.append(("pods that fit nowhere", _NOTHING, *(str(len(each.nowhere)) for each in outlooks[1:])))
    placed = f"{count(found.pods, 'pod')} placed anew on {count(found.nodes, 'node')}"
    said = [f"What if: {placed}. Loads are what pods used in the peak hours."]
    if found.no_longer:
        names = listed((f"{_name(pod)} ({why})" for pod, why in sorted(found.no_longer.items())), _MOST_PODS)
        said.append(f"{count(len(found.no_longer), 'pod')} would no longer fit: {printable(names)}")
    if found.unmeasured:
        said.append(f"{count(found.unmeasured, 'pod')} without a measurement: counted as using nothing.")
    if found.stayed:
        reasons = printable(listed(sorted(set(found.stayed.values())), _MOST_REASONS))
        said.append(
            f"{count(len(found.stayed), 'pod')} left in place, since it is unknown where they would go: {reasons}"
        )
    return ["", *table(rows, width), *(line for each in said for line in wrapped(each, width))]


def _what_if(found: WhatIf) -> dict[str, Any]:
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


def _spread(outlook: ClusterOutlook, name: str) -> str:
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
