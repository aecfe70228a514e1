"""Recommendations as a table, JSON, YAML or CSV, as patches of workloads, VerticalPodAutoscalers, and for kubelets."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple
from typing import Any

import yaml

from rebalancer.recommendation.findings import ClusterOutlook, Load, Neighbours, PodKey, Recommendations, WhatIf
from rebalancer.recommendation.rules import MEBI, Amounts, Reservation, in_mebi
from rebalancer.recommendation.workloads import APPS, Recommendation, Workload
from rebalancer.report.layout import Page, count, listed
from rebalancer.untrusted.printable import printable

_AMOUNTS = ("cpuRequest", "cpuLimit", "memoryRequest", "memoryLimit")
_HEADINGS = ("NAMESPACE", "WORKLOAD", "CONTAINER", "CPU REQUEST", "CPU LIMIT", "MEMORY REQUEST", "MEMORY LIMIT", "SURE")
_NOTHING = "-"
_FORMULA = ("=", "+", "-", "@")  # what a spreadsheet would carry out
_MOST_PAIRS = 10
_MOST_NODES = 5
#: Names of pods, and reasons, in a sentence of `--what-if`.
_MOST_PODS, _MOST_REASONS = 10, 3


def as_text(findings: Recommendations, output: str, width: int) -> str:
    """Return what was found out in a shape: table, json, yaml or csv; a table is as wide as `width`."""
    found = findings.recommendations
    if output == "table":
        page = Page(width)
        _show_containers(findings, page)
        _show_neighbours(findings.neighbours, page)
        if findings.what_if:
            _show_what_if(findings.what_if, page)
        return page.text()
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
    sums: dict[str | None, list[int]] = {}
    for each in found:
        now, change = each.history.now, each.change or Amounts()
        for name in (printable(each.history.workload.namespace), None) if now else ():
            changes = sums.setdefault(name, [0, 0])
            for place, resource in enumerate(("cpu_request", "memory_request")):
                if (new := getattr(change, resource)) is not None:
                    changes[place] += each.history.replicas * (new - (getattr(now, resource) or 0))
    rows = sorted(sums.items(), key=lambda each: (each[0] is None, each[0] or ""))
    return [{"namespace": name, "cpuMilli": cpu, "memoryBytes": memory} for name, (cpu, memory) in rows]


def _document(each: Recommendation, qos: Mapping[Workload, tuple[str, str]]) -> dict[str, Any]:
    workload = each.history.workload
    return {
        "namespace": printable(workload.namespace),
        "kind": printable(workload.kind),
        "name": printable(workload.name),
        "container": printable(each.history.container),
        "now": _amounts(each.history.now),
        "recommended": _amounts(each.need),
        "change": _differences(each),
        "qosClass": dict(zip(("now", "recommended"), qos[workload], strict=True)) if workload in qos else None,
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
    if each.history.now is None or each.change is None:
        return None
    pairs = zip(_AMOUNTS, astuple(each.history.now), astuple(each.change), strict=True)
    return {
        name: ("+" if new >= old else "-") + _quantity(name, abs(new - old))
        for name, old, new in pairs
        if None not in (old, new)
    }


def _amounts(of: Amounts | None) -> dict[str, str | None] | None:
    if of is None:
        return None
    pairs = zip(_AMOUNTS, astuple(of)[: len(_AMOUNTS)], strict=True)
    return {name: None if value is None else _quantity(name, value) for name, value in pairs}


def _quantity(name: str, value: int) -> str:
    if name.startswith("cpu"):
        return f"{value}m"
    return str(value) if value % MEBI else f"{value // MEBI}Mi"


def _csv(documents: Sequence[dict[str, Any]]) -> str:
    rows = csv.writer(text := io.StringIO(), lineterminator="\n")
    plain = ("namespace", "kind", "name", "container")
    rest = ("replicas", "fine", "confidence", "days", "samples", "why")
    amounts = [(part, name) for part in ("now", "recommended", "change") for name in _AMOUNTS]
    amounts += [("qosClass", part) for part in ("now", "recommended")]
    rows.writerow([*plain, *(f"{part} {name}" for part, name in amounts), *rest, "remarks"])
    for each in documents:
        cells = [(each[part] or {}).get(name) or "" for part, name in amounts]
        names = ("'" * each[key].startswith(_FORMULA) + each[key] for key in plain)
        rows.writerow([*names, *cells, *(each[key] for key in rest), "; ".join(each["remarks"])])
    return text.getvalue()


def _show_containers(findings: Recommendations, page: Page) -> None:
    columns: list[tuple[str, ...]] = [_HEADINGS]
    prose = ["WHY"]
    for each in findings.recommendations:
        document = _document(each, findings.qos)
        names = (document["namespace"], f"{document['kind']}/{document['name']}", document["container"])
        cells = (_change(document["now"], document["recommended"], name) for name in _AMOUNTS)
        columns.append((*names, *cells, each.confidence))
        before, after = findings.qos.get(each.history.workload, ("", ""))
        qos = [f"{before} becomes {after}"] if before != after else []
        prose.append("; ".join(["fine" if each.fine else each.why, *each.remarks, *qos]))
    page.rows(columns, prose)
    for sums in totals(findings.recommendations):
        cpu, memory = _freed(sums["cpuMilli"], "m"), _freed(sums["memoryBytes"] // MEBI, "Mi")
        page.say(f"Requests in {sums['namespace'] or 'all'}: cpu {cpu}, memory {memory}")


def _show_neighbours(found: Sequence[Neighbours], page: Page) -> None:
    """Show each pair, and below it what goes under `affinity:` in the first one's template."""
    if not found:
        return
    page.say("")
    page.say("HEAVY WORKLOADS THAT SHARE NODES, and what goes under `affinity:` of the first to part them")
    for each in found[:_MOST_PAIRS]:
        first, other = (document := _neighbours(each))["workloads"]
        pair = f"{first} with itself" if each.first == each.other else f"{first} and {other}"
        cure = json.dumps(each.affinity) if each.affinity else "give the pods of the second a label first"
        page.say(f"{pair}: {listed(document['nodes'], _MOST_NODES)}")
        page.say(f"  {cure}")
    if (more := len(found) - _MOST_PAIRS) > 0:
        page.say(f"and {more} more; -o json has all")


def _neighbours(each: Neighbours) -> dict[str, Any]:
    names = [printable("/".join(workload)) for workload in (each.first, each.other)]
    return {"workloads": names, "nodes": list(map(printable, each.nodes)), "affinity": each.affinity}


def _change(now: dict[str, str | None] | None, wanted: dict[str, str | None] | None, name: str) -> str:
    """Return `100m > 250m`; the new amount alone where the cluster was not looked at or nothing changes."""
    new = (wanted or {}).get(name) or _NOTHING
    old = (now or {}).get(name) or _NOTHING
    return new if now is None or wanted is None or old == new else f"{old} > {new}"


def _freed(change: int, unit: str) -> str:
    return f"{-change}{unit} freed" if change < 0 else f"{change}{unit} missing" if change else "as it is"


def _show_what_if(found: WhatIf, page: Page) -> None:
    outlooks, more = (found.now, found.today, found.recommended), f"more than {found.nodes}"
    rows: list[tuple[str, ...]] = [("WHAT IF", "AS IT IS", "TODAY'S REQUESTS", "RECOMMENDED")]
    for name in found.now.loads:
        loads = [each.loads[name] for each in outlooks]
        rows.append((f"{name}: standard deviation", *map(_spread, loads)))
        rows.append((f"{name}: highest node", *(f"{each.highest:.0f} % ({each.node})" for each in loads)))
    needed = (f"{each.needed} of {found.nodes}" if not each.nowhere else more for each in outlooks[1:])
    rows.append(("nodes needed", _NOTHING, *needed))
    rows.append(("pods that fit nowhere", _NOTHING, *(str(len(each.nowhere)) for each in outlooks[1:])))
    page.say("")
    page.rows(rows)
    pods, nodes = count(found.pods, "pod"), count(found.nodes, "node")
    page.prose(f"What if: {pods} placed anew on {nodes}. Loads are what pods used in the peak hours.")
    if found.no_longer:
        names = listed((f"{'/'.join(pod)} ({why})" for pod, why in sorted(found.no_longer.items())), _MOST_PODS)
        page.prose(f"{count(len(found.no_longer), 'pod')} would no longer fit: {names}")
    if found.unmeasured:
        page.prose(f"{count(found.unmeasured, 'pod')} without a measurement: counted as using nothing.")
    if found.stayed:
        where = "left in place, since it is unknown where they would go"
        reasons = listed(sorted(set(found.stayed.values())), _MOST_REASONS)
        page.prose(f"{count(len(found.stayed), 'pod')} {where}: {reasons}")


def _what_if(found: WhatIf) -> dict[str, Any]:
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


def _spread(load: Load) -> str:
    span = f" ({load.least:.1f} to {load.most:.1f})" if f"{load.least:.1f}" != f"{load.most:.1f}" else ""
    return f"{load.deviation:.1f} points{span}"


def _outlook(outlook: ClusterOutlook) -> dict[str, Any]:
    nowhere = _nowhere(outlook.nowhere)
    return {**_loads(outlook), "nodesNeeded": None if nowhere else outlook.needed, "fitNowhere": nowhere}


def _loads(outlook: ClusterOutlook) -> dict[str, Any]:
    return {
        name: {
            "standardDeviation": round(load.deviation, 2),
            "lowestDeviation": round(load.least, 2),
            "highestDeviation": round(load.most, 2),
            "highestPercent": round(load.highest, 2),
            "highestNode": printable(load.node),
        }
        for name, load in outlook.loads.items()
    }


def _nowhere(pods: Mapping[PodKey, str]) -> list[dict[str, str]]:
    return [{"pod": printable("/".join(pod)), "why": printable(why)} for pod, why in sorted(pods.items())]


_PATCHED = ("DaemonSet", "Deployment", "StatefulSet")
#: What a name of Kubernetes may look like; names of a file that look otherwise could lead out of a folder.
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
#: Thresholds that a kubelet has unless some are set: then only those that are set count.
_DEFAULTS = {
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}


def patches(found: Sequence[Recommendation]) -> dict[str, str]:
    """Return a server-side-apply configuration for each workload that should change, by file name.

    Only workloads of `apps/v1` in the cluster file have one: elsewhere the list of containers may have no schema, and
    ours would take its place.  It has what stays as it is too: the server takes away what an earlier patch set and a
    later one leaves out.  Who has set the same value does not conflict.  What autoscalers scale by is left out.
    """
    changing = {each.history.workload for each in found if each.change and each.history.circumstances.version == APPS}

    def container(each: Recommendation) -> dict[str, Any] | None:
        resources = each.history.workload in changing and _resources(_after(each))
        return {"name": each.history.container, "resources": resources} if resources else None

    return {
        name: _file(workload.kind, version, workload, {"template": {"spec": {"containers": containers}}})
        for name, workload, version, containers in _by_workload(found, container)
    }


def vertical_autoscalers(found: Sequence[Recommendation]) -> dict[str, str]:
    """Return by file name a VerticalPodAutoscaler that only recommends, and never less than requests for the peaks."""

    def container(each: Recommendation) -> dict[str, Any] | None:
        requests = _resources(Amounts(each.need.cpu_request, None, each.need.memory_request)) if each.need else {}
        least = requests.get("requests")
        name = {"containerName": each.history.container}
        return {**name, "controlledResources": sorted(least), "minAllowed": least} if least else None

    files = {}
    every = list(_by_workload(found, container))
    namesakes = Counter((workload.namespace, workload.name) for _, workload, _, _ in every)
    for name, workload, version, containers in every:
        spec = {
            "targetRef": {"apiVersion": version, "kind": workload.kind, "name": workload.name},
            "updatePolicy": {"updateMode": "Off"},
            "resourcePolicy": {"containerPolicies": containers},
        }
        kind = f"-{workload.kind.lower()}" if namesakes[workload.namespace, workload.name] > 1 else ""
        called = workload._replace(name=workload.name + kind)
        files[name] = _file("VerticalPodAutoscaler", "autoscaling.k8s.io/v1", called, spec)
    return files


def _by_workload(
    found: Sequence[Recommendation], container: Callable[[Recommendation], dict[str, Any] | None]
) -> Iterator[tuple[str, Workload, str, list[dict[str, Any]]]]:
    """Yield a name of a file, the workload, its apiVersion, and an entry for each of its containers that has one."""
    containers: dict[tuple[Workload, str], list[dict[str, Any]]] = {}
    for each in found:
        workload = each.history.workload
        names = (workload.namespace, workload.name, each.history.container)
        said = container(each) if workload.kind in _PATCHED and all(map(_NAME.fullmatch, names)) else None
        if said and each.history.now is not None:
            containers.setdefault((workload, each.history.circumstances.version), []).append(said)
    for (workload, version), every in containers.items():
        yield f"{workload.namespace}.{workload.kind.lower()}.{workload.name}.yaml", workload, version, every


def _file(kind: str, version: str, workload: Workload, spec: dict[str, Any]) -> str:
    metadata = {"namespace": workload.namespace, "name": workload.name}
    return yaml.safe_dump({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}, sort_keys=False)


def _after(each: Recommendation) -> Amounts:
    """Return what a container has when the patch is applied; None for what is left alone."""
    now, change, scaled = each.history.now or Amounts(), each.change or Amounts(), each.history.circumstances.scaled
    amounts = [old if new is None else new for old, new in zip(astuple(now), astuple(change), strict=True)]
    resources = ("cpu", "cpu", "memory", "memory")
    return Amounts(*(None if name in scaled else amount for name, amount in zip(resources, amounts, strict=True)))


def _resources(change: Amounts) -> dict[str, dict[str, str]]:
    amounts = {
        "requests": {"cpu": _cpu(change.cpu_request), "memory": _memory(change.memory_request)},
        "limits": {"cpu": _cpu(change.cpu_limit), "memory": _memory(change.memory_limit)},
    }
    given = {part: {name: text for name, text in each.items() if text} for part, each in amounts.items()}
    return {part: each for part, each in given.items() if each}


def _cpu(value: int | None) -> str:
    """Return a quantity as the API server writes it: another spelling of an equal amount would be a conflict."""
    return "" if value is None else f"{value}m" if value % 1000 else str(value // 1000)


def _memory(value: int | None) -> str:
    units = (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10), ("G", 10**9), ("M", 10**6), ("k", 10**3), ("", 1))
    if not value:
        return "" if value is None else "0"
    return next(f"{value // size}{unit}" for unit, size in units if value % size == 0)


def reservations_as_text(found: Sequence[Reservation], output: str, width: int) -> str:
    """Return them in a shape: table (with the snippets below), json or yaml (the snippets alone)."""
    if output == "json":
        whole = {"kind": "Reservations", "sizes": [_reservation(each) for each in found]}
        return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
    snippets = "---\n".join(
        f"# {count(len(each.nodes), 'node')} with {in_mebi(each.capacity)}: "
        f"{listed(map(printable, each.nodes), _MOST_NODES)}\n" + yaml.safe_dump(_configuration(each), sort_keys=False)
        for each in found
    )
    if output == "yaml":
        return snippets
    rows: list[tuple[str, ...]] = [("NODES", "MEMORY", "KEPT TODAY", "SYSTEM USES", "EVICT BELOW", "SYSTEM RESERVED")]
    for each in found:
        amounts = (each.capacity, each.now, each.system.get("memory"), each.eviction, each.reserved["memory"])
        rows.append((str(len(each.nodes)), *("?" if amount is None else in_mebi(amount) for amount in amounts)))
    page = Page(width)
    page.rows(rows)
    for warning in (text for each in found for text in each.warnings):
        page.prose(f"Warning: {warning}")
    return f"{page.text()}\n{snippets}"


def _reservation(each: Reservation) -> dict[str, Any]:
    return {
        "nodes": list(map(printable, each.nodes)),
        "memory": in_mebi(each.capacity),
        "keptToday": in_mebi(each.now),
        "systemUses": {name: _amount(name, value) for name, value in sorted(each.system.items())},
        "kubeletConfiguration": _configuration(each),
        "warnings": list(map(printable, each.warnings)),
    }


def _configuration(each: Reservation) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "evictionHard": {"memory.available": in_mebi(each.eviction), **_DEFAULTS},
        "systemReserved": {name: _amount(name, value) for name, value in sorted(each.reserved.items())},
    }


def _amount(name: str, value: int) -> str:
    return f"{value}m" if name == "cpu" else in_mebi(value)
