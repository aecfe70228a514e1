"""The cluster as it is, without a policy: what nodes really use beside what is requested, and what presets would do."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.resources import CPU, MEMORY, Resources
from rebalancer.errors import RebalancerError, UsageError
from rebalancer.report.document import timestamp
from rebalancer.run import policies
from rebalancer.run.options import Options
from rebalancer.run.snapshot_file import read_snapshot_file
from rebalancer.run.start import clock_of, run_offline
from rebalancer.run.work import work_maker

#: Resources that are compared.
RESOURCES = (CPU, MEMORY)
_SHOWN = 10
_LARGEST = 5
_MEBIBYTE = 1 << 20


def cluster_report(path: str, where: Mapping[str, str | None]) -> dict[str, Any]:
    """Return what a cluster file shows without a policy, and what each preset would do.

    Args:
        path: the file.
        where: which cluster it is of, as in a report.

    Raises:
        UsageError: the file cannot be read.
    """
    file = read_snapshot_file(path)
    snapshot = file.collection.snapshot(datetime.now(UTC))
    snapshot = snapshot.at(clock_of(file, snapshot)[0])
    cluster = Cluster(snapshot)
    used = {each.name: each.usage for each in snapshot.node_metrics or ()}
    nodes = [_node(node, cluster.used(node), used.get(node.name)) for node in snapshot.nodes]
    return {
        "apiVersion": "rebalancer/v1",
        "kind": "ClusterReport",
        "now": timestamp(snapshot.now),
        "cluster": dict(where),
        "nodes": nodes,
        "peaks": list(_peaks(cluster, nodes)),
        "room": list(_room(cluster)),
        "presets": [_preset(name, path) for name in policies.presets()],
        "warnings": [] if snapshot.node_metrics else ["no usage was read: is there a metrics-server?"],
    }


def _node(node: Node, requested: Resources, used: Resources | None) -> dict[str, Any]:
    return {
        "name": node.name,
        "requested": _percents(requested, node),
        "used": None if used is None else _percents(used, node),
    }


def _percents(amounts: Resources, node: Node) -> dict[str, float]:
    offered = node.allocatable
    return {name: round(100 * amounts.get(name, 0) / offered[name], 1) for name in RESOURCES if offered.get(name)}


def _peaks(cluster: Cluster, nodes: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield which owners use most of the fullest nodes, by resource."""
    usage = {(each.namespace, each.name): each.usage for each in cluster.snapshot.pod_metrics or ()}
    known = [each for each in nodes if each["used"]]
    for resource in RESOURCES:
        fullest = sorted(known, key=lambda each: (-each["used"].get(resource, 0.0), each["name"]))[:_SHOWN]
        points: defaultdict[str, float] = defaultdict(float)
        for node in filter(None, (cluster.node(each["name"]) for each in fullest)):
            offered = node.allocatable.get(resource, 0)
            for pod in cluster.active_pods_on(node) if offered else ():
                of = pod.controller
                owner = f"{pod.namespace}/{of.kind}/{of.name}" if of else str(pod)
                points[owner] += 100 * usage.get(pod.key, {}).get(resource, 0) / offered / len(fullest)
        for owner, share in sorted(points.items(), key=lambda pair: (-pair[1], pair[0]))[:_LARGEST]:
            yield {"resource": resource, "owner": owner, "points": round(share, 1)}


def _room(cluster: Cluster) -> Iterator[dict[str, Any]]:
    """Yield on how many nodes the largest pods of the cluster would find room, by requests."""
    kinds = Counter((pod.spec.requests.get(CPU, 0), pod.spec.requests.get(MEMORY, 0)) for pod in cluster.pods())
    free = [cluster.free(node) for node in cluster.ready_nodes if not node.unschedulable]
    for cpu, memory in sorted(kinds, reverse=True)[:_LARGEST]:
        nodes = sum(each(CPU) >= cpu and each(MEMORY) >= memory for each in free)
        requests = f"{cpu}m cpu, {memory // _MEBIBYTE} Mi memory"
        yield {"requests": requests, "pods": kinds[cpu, memory], "nodesWithRoom": nodes}


def _preset(name: str, path: str) -> dict[str, Any]:
    """Return what a preset would do; usage is not asked of any other source than the file."""
    options = Options(policy=name, snapshot=path, dry_run=True)
    try:
        work = work_maker(options)(policies.read_policy(name, strict=False))
        if others := [each.source for each in work.policy.metrics_providers if each.source != "KubernetesMetrics"]:
            raise UsageError(f"it asks {', '.join(others)}, which is not asked here")
        report = run_offline(options, path, work).report
    except RebalancerError as error:
        return {"name": name, "evictions": None, "says": str(error).splitlines()[0]}
    errors = [run["error"] for run in report["strategies"] if run["error"]]
    says = errors[:1] or [run["summary"] for run in report["strategies"] if run["nodes"] or run["evicted"]]
    return {"name": name, "evictions": len(report["evictions"]), "says": "; ".join(filter(None, says)) or "nothing"}
