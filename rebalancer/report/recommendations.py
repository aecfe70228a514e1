"""Recommendations as a table, JSON, YAML or CSV."""

import csv
import io
import json
import re
from collections.abc import Sequence
from typing import Any

import yaml

from rebalancer.recommendation.rules import MEBI, Need
from rebalancer.recommendation.workloads import Now, Recommendation, Workload
from rebalancer.report.layout import hanging
from rebalancer.untrusted.printable import printable

_AMOUNTS = ("cpuRequest", "cpuLimit", "memoryRequest", "memoryLimit")
_HEADINGS = ("NAMESPACE", "WORKLOAD", "CONTAINER", "CPU REQUEST", "CPU LIMIT", "MEMORY REQUEST", "MEMORY LIMIT", "SURE")
_NOTHING = "-"
_PATCHED = ("DaemonSet", "Deployment", "StatefulSet")
#: What a name of Kubernetes may look like; names of a file that look otherwise could lead out of a folder.
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")


def as_text(found: Sequence[Recommendation], output: str, width: int) -> str:
    """Return the recommendations in a shape: table, json, yaml or csv; a table is as wide as `width`."""
    if output == "table":
        return _table(found, width)
    documents = [_document(each) for each in found]
    if output == "csv":
        return _csv(documents)
    whole = {"kind": "Recommendations", "containers": documents, "totals": totals(found)}
    if output == "yaml":
        return yaml.safe_dump(whole, sort_keys=False, allow_unicode=True)
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def totals(found: Sequence[Recommendation]) -> list[dict[str, Any]]:
    """Return the sums of one replica of each workload, by namespace: millicores and bytes that requests change by.

    Only containers that have a recommendation and are in the cluster file count.
    """
    sums: dict[str, list[int]] = {}
    for each in found:
        if each.need is not None and each.history.now is not None:
            changes = sums.setdefault(each.history.workload.namespace, [0, 0])
            changes[0] += each.need.cpu_request - (each.history.now.cpu_request or 0)
            changes[1] += each.need.memory_request - (each.history.now.memory_request or 0)
    return [{"namespace": name, "cpuMilli": cpu, "memoryBytes": memory} for name, (cpu, memory) in sorted(sums.items())]


def _document(each: Recommendation) -> dict[str, Any]:
    workload = each.history.workload
    return {
        "namespace": printable(workload.namespace),
        "kind": workload.kind,
        "name": printable(workload.name),
        "container": printable(each.history.container),
        "now": _amounts(each.history.now),
        "recommended": _amounts(each.need),
        "fine": each.fine,
        "why": each.why,
        "remarks": list(each.remarks),
        "days": each.days,
        "samples": len(each.history.samples),
        "confidence": each.confidence,
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

    Only workloads of the cluster file whose pods are made from a template that can be patched have one.  A limit that
    the rule does not ask for is left alone, unless it is below the new request, which the API server would refuse: then
    it becomes the request.
    """
    containers: dict[Workload, list[dict[str, Any]]] = {}
    for each in found:
        workload, now = each.history.workload, each.history.now
        names = (workload.namespace, workload.name, each.history.container)
        if workload.kind in _PATCHED and all(map(_NAME.fullmatch, names)) and each.need and now and not each.fine:
            resources = _resources(each.need, now)
            containers.setdefault(workload, []).append({"name": each.history.container, "resources": resources})
    return {
        f"{workload.namespace}.{workload.kind.lower()}.{workload.name}.yaml": yaml.safe_dump(
            {
                "apiVersion": "apps/v1",
                "kind": workload.kind,
                "metadata": {"namespace": workload.namespace, "name": workload.name},
                "spec": {"template": {"spec": {"containers": changed}}},
            },
            sort_keys=False,
        )
        for workload, changed in containers.items()
    }


def _resources(need: Need, now: Now) -> dict[str, dict[str, str | None]]:
    limits = {
        "cpu": _cpu(_limit(need.cpu_request, need.cpu_limit, now.cpu_limit)),
        "memory": _memory(_limit(need.memory_request, need.memory_limit, now.memory_limit)),
    }
    requests: dict[str, str | None] = {"cpu": _cpu(need.cpu_request), "memory": _memory(need.memory_request)}
    set_limits: dict[str, str | None] = {name: limit for name, limit in limits.items() if limit is not None}
    return {"requests": requests, **({"limits": set_limits} if set_limits else {})}


def _limit(request: int, wanted: int | None, now: int | None) -> int | None:
    return request if wanted is None and now is not None and now < request else wanted


def _csv(documents: Sequence[dict[str, Any]]) -> str:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    plain = ("namespace", "kind", "name", "container")
    rest = ("fine", "confidence", "days", "samples", "why")
    amounts = [(part, name) for part in ("now", "recommended") for name in _AMOUNTS]
    rows.writerow([*plain, *(f"{part} {name}" for part, name in amounts), *rest, "remarks"])
    for each in documents:
        cells = [(each[part] or {}).get(name) or "" for part, name in amounts]
        rows.writerow([*(each[key] for key in plain), *cells, *(each[key] for key in rest), "; ".join(each["remarks"])])
    return text.getvalue()


def _table(found: Sequence[Recommendation], width: int) -> str:
    columns: list[tuple[str, ...]] = [_HEADINGS]
    prose = ["WHY"]
    for each in found:
        document = _document(each)
        names = (document["namespace"], f"{document['kind']}/{document['name']}", document["container"])
        cells = (_change(document["now"], document["recommended"], name) for name in _AMOUNTS)
        columns.append((*names, *cells, each.confidence))
        prose.append("; ".join(["fine" if each.fine else each.why, *each.remarks]))
    lines = [line for row in hanging(columns, prose, width) for line in row]
    return "\n".join([*lines, *_total_lines(found)]) + "\n"


def _change(now: dict[str, str | None] | None, wanted: dict[str, str | None] | None, name: str) -> str:
    """Return `100m > 250m`; the new amount alone where the cluster was not looked at or nothing changes."""
    new = (wanted or {}).get(name) or _NOTHING
    old = (now or {}).get(name) or _NOTHING
    return new if now is None or wanted is None or old == new else f"{old} > {new}"


def _total_lines(found: Sequence[Recommendation]) -> list[str]:
    return [
        f"Requests in {printable(each['namespace'])}, one replica of each: "
        f"cpu {each['cpuMilli']:+}m, memory {each['memoryBytes'] // MEBI:+}Mi"
        for each in totals(found)
    ]
