"""The cluster as it is, without a policy: what nodes really use beside what is requested, and what presets would do."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import CPU, MEMORY, Resources
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.errors import RebalancerError
from rebalancer.report.document import timestamp

#: Resources that are compared.
RESOURCES = (CPU, MEMORY)
_SHOWN = 10
_LARGEST = 5
_MEBIBYTE = 1 << 20

#: Returns the report of a dry run under a preset.  Raises RebalancerError where it cannot run.
DryRun = Callable[[str], Mapping[str, Any]]


def cluster_document(
    snapshot: Snapshot, where: Mapping[str, str | None], presets: Sequence[str], dry_run: DryRun
) -> dict[str, Any]:
    """Return the report of a cluster.

    Args:
        snapshot: the cluster.
        where: which one, as in a report.
        presets: those to try out.
        dry_run: tries one out.
    """
    cluster = Cluster(snapshot)
    used = {each.name: each.usage for each in snapshot.node_metrics or ()}
    nodes = [_node(node, cluster.used(node), used.get(node.name)) for node in cluster.snapshot.nodes]
    return {
        "apiVersion": "rebalancer/v1",
        "kind": "ClusterReport",
        "now": timestamp(snapshot.now),
        "cluster": dict(where),
        "nodes": nodes,
        "peaks": list(_peaks(cluster, nodes)),
        "room": list(_room(cluster)),
        "presets": [_preset(name, dry_run) for name in presets],
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
        for name in (each["name"] for each in fullest):
            node = cluster.node(name)
            for pod in cluster.active_pods_on(node) if node else ():
                offered = node.allocatable.get(resource) if node else 0
                if offered:
                    points[_owner(pod)] += 100 * usage.get(pod.key, {}).get(resource, 0) / offered / len(fullest)
        for owner, share in sorted(points.items(), key=lambda pair: (-pair[1], pair[0]))[:_LARGEST]:
            yield {"resource": resource, "owner": owner, "points": round(share, 1)}


def _owner(pod: Pod) -> str:
    owner = pod.controller
    return f"{pod.namespace}/{owner.kind}/{owner.name}" if owner else str(pod)


def _room(cluster: Cluster) -> Iterator[dict[str, Any]]:
    """Yield on how many nodes the largest pods of the cluster would find room, by requests."""
    kinds = Counter((pod.spec.requests.get(CPU, 0), pod.spec.requests.get(MEMORY, 0)) for pod in cluster.pods())
    free = [cluster.free(node) for node in cluster.ready_nodes if not node.unschedulable]
    for cpu, memory in sorted(kinds, reverse=True)[:_LARGEST]:
        nodes = sum(each(CPU) >= cpu and each(MEMORY) >= memory for each in free)
        requests = f"{cpu}m cpu, {memory // _MEBIBYTE} Mi memory"
        yield {"requests": requests, "pods": kinds[cpu, memory], "nodesWithRoom": nodes}


def _preset(name: str, dry_run: DryRun) -> dict[str, Any]:
    try:
        report = dry_run(name)
    except RebalancerError as error:
        return {"name": name, "evictions": None, "says": str(error).splitlines()[0]}
    errors = [run["error"] for run in report["strategies"] if run["error"]]
    says = errors[:1] or [run["summary"] for run in report["strategies"] if run["nodes"] or run["evicted"]]
    return {"name": name, "evictions": len(report["evictions"]), "says": "; ".join(filter(None, says)) or "nothing"}
