"""Recommends what kubelets should keep for the system, from a snapshot file and from Prometheus if there is one."""

from collections.abc import Mapping
from datetime import UTC, datetime
from math import inf

from rebalancer.cluster.resources import CPU, MEMORY, Resources, add
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.errors import SourceError
from rebalancer.recommendation.rules import Reservation, reservations
from rebalancer.run.options import HistoryOptions
from rebalancer.run.recommend import connected, span_of
from rebalancer.run.snapshot_file import read_snapshot_file
from rebalancer.usage.history import AskRange, Span

_PODS = 'container!="",container!="POD"'
_USED = {
    CPU: '1000 * sum by (node) (rate(container_cpu_usage_seconds_total{id="/"}[5m]))',
    MEMORY: 'sum by (node) (container_memory_working_set_bytes{id="/"})',
}
_USED_BY_PODS = {
    CPU: f"1000 * sum by (node) (rate(container_cpu_usage_seconds_total{{{_PODS}}}[5m]))",
    MEMORY: f"sum by (node) (container_memory_working_set_bytes{{{_PODS}}})",
}
_HOUR, _DAY = 3600, 86_400

#: By node and resource.
NodeUsage = dict[str, dict[str, int]]


def recommended_reservations(snapshot: str, history: HistoryOptions) -> tuple[list[Reservation], list[str]]:
    """Return what kubelets should keep, and what the reader should know.

    Without a Prometheus, which tells of days, the single sample of the snapshot file is all that is known.
    """
    cluster = read_snapshot_file(snapshot).collection.snapshot(datetime.now(UTC))
    used, system = _sampled(cluster)
    remarks: list[str] = []
    if history.prometheus or history.policy:
        span = span_of(history)
        ask = connected(history, span).ask_range
        for name in (CPU, MEMORY):
            try:
                _raise(used, name, _highest(ask, _USED[name], span))
                _raise(system, name, _highest(ask, f"({_USED[name]}) - ({_USED_BY_PODS[name]})", span))
            except SourceError as error:
                remarks.append(f"what nodes use of {name} is not known from Prometheus: {error}")
    if not system:
        remarks.append("nobody measured what the system uses: take a snapshot with a metrics-server, or --prometheus")
    strangers = used.keys() - {node.name for node in cluster.nodes}
    if strangers:
        remarks.append(f"Prometheus tells of nodes that are not in the file: {', '.join(sorted(strangers)[:3])}")
    requested: dict[str, dict[str, int]] = {}
    for pod in cluster.pods:
        if pod.active:
            add(requested.setdefault(pod.node, {}), pod.spec.requests)
    return reservations(cluster.nodes, used, system, requested), remarks


def _sampled(cluster: Snapshot) -> tuple[NodeUsage, NodeUsage]:
    """Return what the file's sample of metrics-server tells: the usage of nodes, and the part of it that no pod has."""
    by_pods: NodeUsage = {}
    measured = {(each.namespace, each.name): each.usage for each in cluster.pod_metrics or ()}
    unmeasured: set[str] = set()
    for pod in cluster.pods:
        if pod.key in measured:
            add(by_pods.setdefault(pod.node, {}), measured[pod.key])
        elif pod.phase == "Running":
            unmeasured.add(pod.node)
    used = {each.name: dict(each.usage) for each in cluster.node_metrics or ()}
    system: NodeUsage = {}
    for node, amounts in used.items():
        if node not in unmeasured:
            known = [name for name in (CPU, MEMORY) if name in amounts]
            system[node] = {name: max(amounts[name] - by_pods.get(node, {}).get(name, 0), 0) for name in known}
    return used, system


def _highest(ask: AskRange, query: str, span: Span) -> Mapping[str, int]:
    """Return the highest value of each node, asked day by day."""
    found: dict[str, int] = {}
    for begin in range(round(span.start), round(span.end), _DAY):
        wanted = f"max_over_time(({query})[1h:5m])"
        end = min(begin + _DAY, span.end)
        for series in ask(wanted, min(begin + _HOUR, end), end, _HOUR).series:
            node = series.labels.get("node", "")
            values = (round(each.value) for each in series.values if 0 <= each.value < inf)
            found[node] = max(found.get(node, 0), *values, 0)
    return found


def _raise(into: NodeUsage, resource: str, amounts: Resources) -> None:
    for node, amount in amounts.items():
        known = into.setdefault(node, {})
        known[resource] = max(known.get(resource, 0), amount)
