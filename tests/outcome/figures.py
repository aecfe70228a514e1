"""What the metrics API tells of nodes and pods, and whether it has seen the latest change."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from kubernetes.utils.quantity import parse_quantity

from tests.e2e.api import Object
from tests.outcome.state import RESOURCES

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


def duration(text: str) -> timedelta:
    """Read a duration as Go prints it: "10.023s", "1m3.5s"."""
    parts = re.findall(r"([0-9.]+)(h|ms|us|µs|ns|m|s)", text)
    return timedelta(seconds=sum(float(number) * _UNITS[unit] for number, unit in parts))


def window_start(metrics: Object) -> datetime:
    """Return when the window began that a NodeMetrics or PodMetrics is about.

    CPU is a rate between two readings, the first of which is the window's start.
    """
    return datetime.fromisoformat(metrics["timestamp"]) - duration(metrics["window"])


def unsettled(metrics: Iterable[Object], names: Iterable[str], since: datetime) -> set[str]:
    """Return those of the names that have no figures whose whole window is later than the last change."""
    settled = {item["metadata"]["name"] for item in metrics if window_start(item) >= since}
    return set(names) - settled


def shares(nodes: Iterable[Object], metrics: Iterable[Object]) -> dict[str, Mapping[str, float]]:
    """Return what each node uses of each resource, in percent of what it has allocatable."""
    used = {item["metadata"]["name"]: item["usage"] for item in metrics}
    return {
        node["metadata"]["name"]: {
            name: 100 * _number(used[node["metadata"]["name"]][name]) / _number(node["status"]["allocatable"][name])
            for name in RESOURCES
        }
        for node in nodes
    }


def _number(quantity: str) -> float:
    return float(parse_quantity(quantity))  # type: ignore[no-untyped-call] # the client ships no types
