"""Reservations of kubelets as snippets of their configuration, as JSON, or as a table."""

import json
from collections.abc import Sequence
from typing import Any

import yaml

from rebalancer.recommendation.reservations import MEBI, Reservation
from rebalancer.report.layout import count, hanging, listed, wrapped
from rebalancer.untrusted.printable import printable

#: Thresholds that a kubelet has unless some are set: then only those that are set count.
_DEFAULTS = {
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}
_MOST_NAMES = 5


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
        amounts = (each.capacity, each.now), (each.eviction, each.reserved["memory"])
        (capacity, now), (eviction, reserved) = (tuple(map(_size, pair)) for pair in amounts)
        rows.append((str(len(each.nodes)), capacity, now, used, eviction, reserved))
    table = [line for row in hanging(rows, [""] * len(rows), width) for line in row]
    warnings = [
        line for each in found for text in each.warnings for line in wrapped(f"Warning: {printable(text)}", width)
    ]
    return "\n".join([*table, *warnings, "", snippets])


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
