"""All that is found out about a cluster: recommendations, what they would change, and heavy workloads that share nodes.

A workload is heavy on a node if one of its pods there uses a quarter of the node's CPU or memory, or more.
Requests alone do not part two of them where both fit.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import CPU, MEMORY
from rebalancer.cluster.selectors import Labels
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.recommendation.samples import Columns
from rebalancer.recommendation.what_if import RESOURCES, PodKey, Usage, WhatIf
from rebalancer.recommendation.workloads import History, Recommendation, Workload

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


@dataclass(frozen=True, slots=True)
class Recommendations:
    """All that is found out about a cluster.

    Attributes:
        recommendations: for each container, in the order of namespaces and names.
        what_if: what they would change; None if nobody asked.
        neighbours: heavy workloads that share nodes.
        qos: by workload, the quality of service of its pods today and with what is recommended.
    """

    recommendations: Sequence[Recommendation]
    what_if: WhatIf | None = None
    neighbours: Sequence[Neighbours] = ()
    qos: Mapping[Workload, tuple[str, str]] = field(default_factory=dict)


def pod_usage(
    histories: Iterable[History], pods: Mapping[tuple[str, str], Workload]
) -> dict[tuple[str, str], dict[str, float]]:
    """Return what each pod uses in the peak windows, as a mean; by namespace and name, then by resource.

    A pod that has not been measured is taken to use what the others of its workload do.

    Args:
        histories: of all containers that were measured.
        pods: the pods of the cluster, and whose they are.
    """
    own: dict[tuple[str, str], dict[str, float]] = {}
    usual: dict[Workload, dict[str, float]] = {}
    for each in histories:
        by_pod: dict[str, list[Columns]] = {}
        for name, _, found in each.samples.steady().in_windows():
            by_pod.setdefault(name, []).append(found)
        for name, parts in by_pod.items():
            _add_means(own.setdefault((each.workload.namespace, name), {}), parts)
        if by_pod:
            _add_means(usual.setdefault(each.workload, {}), [part for parts in by_pod.values() for part in parts])
    used = {pod: own.get(pod) or usual.get(workload) for pod, workload in pods.items()}
    return {pod: amounts for pod, amounts in used.items() if amounts}


def _add_means(into: dict[str, float], parts: Sequence[Columns]) -> None:
    count = sum(len(each.times) for each in parts)
    into[CPU] = into.get(CPU, 0.0) + 1000 * sum(sum(each.cpu) for each in parts) / count
    into[MEMORY] = into.get(MEMORY, 0.0) + sum(sum(each.memory) for each in parts) / count


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
