"""Recommendations as a table, JSON, YAML or CSV."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple
from typing import Any

import yaml

from rebalancer.recommendation.findings import Neighbours, Recommendations
from rebalancer.recommendation.rules import MEBI
from rebalancer.recommendation.workloads import Now, Recommendation, Workload
from rebalancer.report.layout import hanging, listed
from rebalancer.report.what_if import what_if_document, what_if_lines
from rebalancer.untrusted.printable import printable

_AMOUNTS = ("cpuRequest", "cpuLimit", "memoryRequest", "memoryLimit")
_HEADINGS = ("NAMESPACE", "WORKLOAD", "CONTAINER", "CPU REQUEST", "CPU LIMIT", "MEMORY REQUEST", "MEMORY LIMIT", "SURE")
_NOTHING = "-"
_MOST_PAIRS = 10
_MOST_NODES = 5
_PATCHED = ("DaemonSet", "Deployment", "StatefulSet")
#: What a name of Kubernetes may look like; names of a file that look otherwise could lead out of a folder.
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")


def as_text(findings: Recommendations, output: str, width: int) -> str:
    """Return what was found out in a shape: table, json, yaml or csv; a table is as wide as `width`."""
    found = findings.recommendations
    if output == "table":
        more = what_if_lines(findings.what_if, width) if findings.what_if else []
        return "\n".join([*_table(findings, width), *_neighbour_lines(findings.neighbours), *more]) + "\n"
    documents = [_document(each, findings.qos) for each in found]
    if output == "csv":
        return _csv(documents)
    whole: dict[str, Any] = {"kind": "Recommendations", "containers": documents, "totals": totals(found)}
    if findings.neighbours:
        whole["heavyNeighbours"] = [_neighbours(each) for each in findings.neighbours]
    if findings.what_if:
        whole["whatIf"] = what_if_document(findings.what_if)
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
    pairs = dict(zip(_AMOUNTS, zip(astuple(now), astuple(wanted), strict=True), strict=True))
    changes = {name: (new - old) for name, (old, new) in pairs.items() if None not in (old, new)}
    return {
        name: ("+" if change >= 0 else "-") + str((_cpu if name.startswith("cpu") else _memory)(abs(change)))
        for name, change in changes.items()
    }


def _amounts(of: Any) -> dict[str, str | None] | None:
    """Return the four amounts of a Need or a Now as quantities."""
    if of is None:
        return None
    values = (_cpu(of.cpu_request), _cpu(of.cpu_limit), _memory(of.memory_request), _memory(of.memory_limit))
    return dict(zip(_AMOUNTS, values, strict=True))


def _cpu(value: int | None) -> str | None:
    return None if value is None else f"{value}m"


def _memory(value: int | None) -> str | None:
    if value is None:
        return None
    return str(value) if value % MEBI else f"{value // MEBI}Mi"


def patches(found: Sequence[Recommendation]) -> dict[str, str]:
    """Return a server-side-apply configuration for each workload that should change, by file name.

    Only workloads of the cluster file whose pods are made from a template that can be patched have one.  It has what
    stays as it is too: the server takes away what an earlier patch of ours set and a later one leaves out.  A field
    manager that has set the same value does not conflict.  Resources that an autoscaler scales by are left out.
    """
    changing = {each.history.workload for each in found if each.change}

    def container(each: Recommendation) -> dict[str, Any] | None:
        resources = _resources(_after(each)) if each.history.workload in changing else {}
        return {"name": each.history.container, "resources": resources} if resources else None

    return {
        name: _file(workload.kind, "apps/v1", workload, {"template": {"spec": {"containers": containers}}})
        for name, workload, containers in _by_workload(found, container)
    }


def vertical_autoscalers(found: Sequence[Recommendation]) -> dict[str, str]:
    """Return a VerticalPodAutoscaler that changes nothing for each workload that is measured, by file name.

    It recommends beside us, and never less than what is requested for the peaks.
    """

    def container(each: Recommendation) -> dict[str, Any] | None:
        requests = _resources(Now(each.need.cpu_request, None, each.need.memory_request)) if each.need else {}
        least = requests.get("requests")
        name = {"containerName": each.history.container}
        return {**name, "controlledResources": sorted(least), "minAllowed": least} if least else None

    version = "autoscaling.k8s.io/v1"
    return {
        name: _file(
            "VerticalPodAutoscaler",
            version,
            workload,
            {
                "targetRef": {"apiVersion": "apps/v1", "kind": workload.kind, "name": workload.name},
                "updatePolicy": {"updateMode": "Off"},
                "resourcePolicy": {"containerPolicies": containers},
            },
        )
        for name, workload, containers in _by_workload(found, container)
    }


def _by_workload(
    found: Sequence[Recommendation], container: Callable[[Recommendation], dict[str, Any] | None]
) -> Iterator[tuple[str, Workload, list[dict[str, Any]]]]:
    """Yield a name of a file, the workload, and what is said of its containers; None says nothing."""
    containers: dict[Workload, list[dict[str, Any]]] = {}
    for each in found:
        workload = each.history.workload
        names = (workload.namespace, workload.name, each.history.container)
        said = container(each) if workload.kind in _PATCHED and all(map(_NAME.fullmatch, names)) else None
        if said and each.history.now is not None:
            containers.setdefault(workload, []).append(said)
    for workload, every in containers.items():
        yield f"{workload.namespace}.{workload.kind.lower()}.{workload.name}.yaml", workload, every


def _file(kind: str, version: str, workload: Workload, spec: dict[str, Any]) -> str:
    metadata = {"namespace": workload.namespace, "name": workload.name}
    return yaml.safe_dump({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}, sort_keys=False)


def _after(each: Recommendation) -> Now:
    """Return what a container has when the patch is applied; None for what is left alone."""
    now, change, scaled = each.history.now or Now(), each.change or Now(), each.history.circumstances.scaled
    amounts = [old if new is None else new for old, new in zip(astuple(now), astuple(change), strict=True)]
    resources = ("cpu", "cpu", "memory", "memory")
    return Now(*(None if name in scaled else amount for name, amount in zip(resources, amounts, strict=True)))


def _resources(change: Now) -> dict[str, dict[str, str]]:
    texts = (_canonical_cpu, _canonical_memory)
    values = dict(zip(_AMOUNTS, astuple(change), strict=True))
    amounts = {name: texts[name.startswith("memory")](value) for name, value in values.items() if value is not None}
    parts = {"requests": ("cpuRequest", "memoryRequest"), "limits": ("cpuLimit", "memoryLimit")}
    resources = ("cpu", "memory")
    found = {
        part: {resource: amounts[name] for resource, name in zip(resources, names, strict=True) if name in amounts}
        for part, names in parts.items()
    }
    return {part: each for part, each in found.items() if each}


def _canonical_cpu(value: int) -> str:
    """Return a quantity as the API server writes it: another spelling of an equal amount would be a conflict."""
    return f"{value}m" if value % 1000 else str(value // 1000)


def _canonical_memory(value: int) -> str:
    for unit, size in (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if value and value % size == 0:
            return f"{value // size}{unit}"
    return str(value)


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
