"""Usage from metrics-server: one list of nodes, one list of pods."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import LoadFigure, Measured, NodeLoads, NodeMetrics, PodMetrics
from rebalancer.cluster.resources import CPU, MEMORY, Resources
from rebalancer.usage.sample_age import of_nodes, stale

RESOURCES = (CPU, MEMORY)
#: By resource, the type of load-watcher's figures.
_LOAD_TYPES = {CPU: "CPU", MEMORY: "Memory"}
DEFAULT_MAX_AGE = timedelta(minutes=3)


@dataclass(frozen=True, slots=True)
class Metrics:
    """The objects of metrics.k8s.io (no pods if only nodes are known), and warnings about those that are unreadable."""

    nodes: Sequence[NodeMetrics]
    pods: Sequence[PodMetrics] | None
    warnings: tuple[str, ...] = ()


def measured(metrics: Metrics, max_age: timedelta | None, cluster: Cluster) -> Measured:
    """Return usage by samples no older than `max_age` (None: three minutes), or without a time."""
    longest = DEFAULT_MAX_AGE if max_age is None else max_age
    known = {each.name: each for each in metrics.nodes}
    nodes, missing = of_nodes(cluster, lambda node: _usage(known.get(node.name), cluster.now, longest))
    pods = pod_usage(metrics, longest, cluster.now)
    taken = min((each.taken for each in metrics.nodes if each.taken), default=None)
    return Measured(nodes, nodes, pods=pods, missing=missing, taken=taken, warnings=metrics.warnings)


def loads(metrics: Metrics, cluster: Cluster) -> NodeLoads:
    """Return the figures as load-watcher makes them of metrics-server's: samples of any age, in percent of capacity."""
    known = {each.name: each.usage for each in metrics.nodes}
    figures: dict[str, list[LoadFigure]] = {}
    for node in cluster.snapshot.nodes:
        used, capacity = known.get(node.name, {}), node.capacity
        found = [
            LoadFigure(kind, "Latest", 100 * used[name] / capacity[name])
            for name, kind in _LOAD_TYPES.items()
            if name in used and capacity.get(name)
        ]
        if found:
            figures[node.name] = found
    return NodeLoads(figures, cluster.now)


def pod_usage(metrics: Metrics, longest: timedelta, now: datetime) -> Mapping[tuple[str, str], Resources] | None:
    """Return the known usage of each pod with a fresh sample, by (namespace, name)."""
    if metrics.pods is None:
        return None
    return {
        (each.namespace, each.name): {name: each.usage[name] for name in RESOURCES if name in each.usage}
        for each in metrics.pods
        if each.taken is None or not stale(now - each.taken, longest)
    }


def _usage(found: NodeMetrics | None, now: datetime, longest: timedelta) -> Resources | str:
    if found is None:
        return "metrics-server does not know it"
    absent = [name for name in RESOURCES if name not in found.usage]
    if absent:
        return f"its sample has no {' and no '.join(absent)}"
    why_not = stale(now - found.taken, longest) if found.taken else ""
    return why_not or {name: found.usage[name] for name in RESOURCES}
