"""Heavy workloads that share nodes, and the anti-affinity that would part them.

A workload is heavy on a node if one of its pods there uses a quarter of the node's CPU or memory, or more.
Requests alone do not part two of them where both fit.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.selectors import Labels
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.recommendation.what_if import RESOURCES, PodKey, Usage
from rebalancer.recommendation.workloads import Workload

_HEAVY = 0.25
_HOST = "kubernetes.io/hostname"
_ZONES = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
#: Labels that differ from pod to pod, or from rollout to rollout.
_PASSING = frozenset(
    (
        *("pod-template-hash", "controller-revision-hash", "pod-template-generation", *_ZONES),
        *("statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"),
    )
)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Two heavy workloads, or one with itself, and the nodes that they share.

    Attributes:
        first: of its pods is the template that gets the anti-affinity.
        other: the workload to keep away from.
        nodes: their names.
        affinity: what goes below `affinity` in the first one's template; None if no labels tell the other's pods.
    """

    first: Workload
    other: Workload
    nodes: tuple[str, ...]
    affinity: Mapping[str, Any] | None


def heavy_neighbours(snapshot: Snapshot, owners: Mapping[PodKey, Workload], usage: Usage) -> list[Neighbours]:
    """Return the heavy workloads that share nodes, those with the most nodes first.

    Args:
        snapshot: the cluster as it is.
        owners: whose the pods are.
        usage: of the pods that were measured.
    """
    offered = {node.name: node.allocatable for node in snapshot.nodes}
    heavy: dict[str, Counter[Workload]] = {}
    labels: dict[Workload, Labels] = {}
    for pod in snapshot.pods:
        owner = owners.get(pod.key)
        if owner and pod.active and _is_heavy(pod, offered.get(pod.node, {}), usage):
            heavy.setdefault(pod.node, Counter())[owner] += 1
        if owner and owner.kind != "DaemonSet":
            shared = labels.get(owner, pod.labels).items() & pod.labels.items()
            labels[owner] = {name: value for name, value in sorted(shared) if name not in _PASSING}
    shared_nodes: dict[tuple[Workload, Workload], list[str]] = {}
    for node, found in sorted(heavy.items()):
        present = sorted(each for each in found if each in labels)
        for pair in (*combinations(present, 2), *((each, each) for each in present if found[each] > 1)):
            shared_nodes.setdefault(pair, []).append(node)
    ranked = sorted(shared_nodes.items(), key=lambda each: (-len(each[1]), each[0]))
    return [Neighbours(*pair, tuple(nodes), _affinity(*pair, labels[pair[1]])) for pair, nodes in ranked]


def _is_heavy(pod: Pod, offered: Mapping[str, int], usage: Usage) -> bool:
    used = usage.get(pod.key, {})
    return any(used.get(name, 0) >= _HEAVY * offered[name] for name in RESOURCES if offered.get(name))


def _affinity(first: Workload, other: Workload, labels: Labels) -> Mapping[str, Any] | None:
    if not labels:
        return None
    term: dict[str, Any] = {"topologyKey": _HOST, "labelSelector": {"matchLabels": dict(labels)}}
    if first.namespace != other.namespace:
        term["namespaces"] = [other.namespace]
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
