"""What the metrics API tells of nodes and pods, and whether it has seen the latest change."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from kubernetes.utils.quantity import parse_quantity

from rebalancer.policy.arguments import parse_duration
from tests.e2e.api import Object
from tests.outcome.state import RESOURCES, Shares

Used = Mapping[str, Mapping[str, float]]


def window_start(metrics: Object) -> datetime:
    """Return when the window began that a NodeMetrics or PodMetrics is about.

    CPU is a rate between two readings, the first of which is the window's start.
    """
    return datetime.fromisoformat(metrics["timestamp"]) - parse_duration(metrics["window"])


def unsettled(metrics: Iterable[Object], names: Iterable[str], since: datetime) -> set[str]:
    """Return those of the names that have no figures whose whole window is later than the last change."""
    settled = {item["metadata"]["name"] for item in metrics if window_start(item) >= since}
    return set(names) - settled


def measured(metrics: Iterable[Object]) -> Used:
    """Return what nodes use by their NodeMetrics, in cores and bytes."""
    return {item["metadata"]["name"]: {name: _number(item["usage"][name]) for name in RESOURCES} for item in metrics}


def told(pods: Iterable[Object]) -> Used:
    """Return what nodes use by their pods' annotations, in cores and bytes."""
    used: dict[str, dict[str, float]] = {}
    for pod in pods:
        node = used.setdefault(pod["spec"].get("nodeName", ""), dict.fromkeys(RESOURCES, 0.0))
        for name in RESOURCES:
            node[name] += _number(pod["metadata"]["annotations"][f"usage.test/{name}"])
    return used


def shares(nodes: Iterable[Object], used: Used) -> Shares:
    """Return what each node uses of each resource, in percent of what it has allocatable."""
    return {
        node["metadata"]["name"]: {
            name: 100 * used[node["metadata"]["name"]][name] / _number(node["status"]["allocatable"][name])
            for name in RESOURCES
        }
        for node in nodes
    }


def _number(quantity: str) -> float:
    return float(parse_quantity(quantity))  # type: ignore[no-untyped-call] # the client ships no types
