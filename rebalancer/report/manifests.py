"""What recommendations come to in YAML: patches of workloads, VerticalPodAutoscalers, configurations of kubelets."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple
from typing import Any

import yaml

from rebalancer.recommendation.reservations import MEBI, Reservation
from rebalancer.recommendation.workloads import Now, Recommendation, Workload
from rebalancer.report.layout import count, listed, table, wrapped
from rebalancer.untrusted.printable import printable

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
_MOST_NAMES = 5


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

    def spec(workload: Workload, containers: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "targetRef": {"apiVersion": "apps/v1", "kind": workload.kind, "name": workload.name},
            "updatePolicy": {"updateMode": "Off"},
            "resourcePolicy": {"containerPolicies": containers},
        }

    return {
        name: _file("VerticalPodAutoscaler", "autoscaling.k8s.io/v1", workload, spec(workload, containers))
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
    amounts = {
        "requests": {"cpu": _cpu(change.cpu_request), "memory": _memory(change.memory_request)},
        "limits": {"cpu": _cpu(change.cpu_limit), "memory": _memory(change.memory_limit)},
    }
    given = {part: {name: text for name, text in each.items() if text} for part, each in amounts.items()}
    return {part: each for part, each in given.items() if each}


def _cpu(value: int | None) -> str:
    """Return a quantity as the API server writes it: another spelling of an equal amount would be a conflict."""
    if value is None:
        return ""
    return f"{value}m" if value % 1000 else str(value // 1000)


def _memory(value: int | None) -> str:
    units = (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10), ("G", 10**9), ("M", 10**6), ("k", 10**3), ("", 1))
    if not value:
        return "" if value is None else "0"
    return next(f"{value // size}{unit}" for unit, size in units if value % size == 0)


def reservations_as_text(found: Sequence[Reservation], output: str, width: int) -> str:
    """Return them in a shape: table (with the snippets below), json or yaml (the snippets alone)."""
    if output == "json":
        whole = {"kind": "Reservations", "sizes": [_document(each) for each in found]}
        return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
    snippets = "---\n".join(_snippet(each) for each in found)
    if output == "yaml":
        return snippets
    rows = [("NODES", "MEMORY", "KEPT TODAY", "SYSTEM USES", "EVICT BELOW", "SYSTEM RESERVED")]
    for each in found:
        used = _size(each.system["memory"]) if "memory" in each.system else "?"
        capacity, now, eviction, reserved = map(
            _size, (each.capacity, each.now, each.eviction, each.reserved["memory"])
        )
        rows.append((str(len(each.nodes)), capacity, now, used, eviction, reserved))
    warnings = [
        line for each in found for text in each.warnings for line in wrapped(f"Warning: {printable(text)}", width)
    ]
    return "\n".join([*table(rows, width), *warnings, "", snippets])


def _document(each: Reservation) -> dict[str, Any]:
    return {
        "nodes": list(map(printable, each.nodes)),
        "memory": _size(each.capacity),
        "keptToday": _size(each.now),
        "systemUses": {name: _amount(name, value) for name, value in sorted(each.system.items())},
        "kubeletConfiguration": _configuration(each),
        "warnings": list(map(printable, each.warnings)),
    }


def _snippet(each: Reservation) -> str:
    names = listed(map(printable, each.nodes), _MOST_NAMES)
    head = f"# {count(len(each.nodes), 'node')} with {_size(each.capacity)}: {names}\n"
    return head + yaml.safe_dump(_configuration(each), sort_keys=False)


def _configuration(each: Reservation) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "evictionHard": {"memory.available": _size(each.eviction), **_DEFAULTS},
        "systemReserved": {name: _amount(name, value) for name, value in sorted(each.reserved.items())},
    }


def _amount(name: str, value: int) -> str:
    return f"{value}m" if name == "cpu" else _size(value)


def _size(value: int) -> str:
    return f"{value // MEBI}Mi"
