"""All that is found out about a cluster: recommendations, what they would change, and heavy workloads that share nodes.

A workload is heavy on a node if one of its pods there uses a quarter of the node's CPU or memory, or more.
Requests alone do not part two of them where both fit.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import pstdev
from typing import Any

import msgspec

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import PodSpec
from rebalancer.cluster.resources import CPU, MEMORY
from rebalancer.cluster.selectors import Labels
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.recommendation.samples import Columns
from rebalancer.recommendation.workloads import History, Recommendation, Workload
from rebalancer.scheduling.from_scratch import EmptyCluster, Placed

RESOURCES = (CPU, MEMORY)
#: By namespace and name.
PodKey = tuple[str, str]
_PLACEMENTS = 30_000
_MOST_HISTORIES = 15
#: By pod and resource: millicores and bytes.
Usage = Mapping[PodKey, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Load:
    """How one resource is used, in percent of what nodes offer: the standard deviation over nodes in points."""

    deviation: float
    least: float  # the lowest deviation in any history
    most: float  # the highest one
    highest: float  # of the node that uses most
    node: str


@dataclass(frozen=True, slots=True)
class ClusterOutlook:
    """The cluster with all pods placed in one way: loads by resource, nodes needed if packed, and what fits nowhere."""

    loads: Mapping[str, Load]
    needed: int | None
    nowhere: Mapping[PodKey, str]


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Three pictures of a cluster."""

    nodes: int  # how many nodes take pods; the figures are about these
    pods: int  # how many pods were placed
    now: ClusterOutlook
    today: ClusterOutlook  # placed anew under the requests of today
    recommended: ClusterOutlook  # the same under those that are recommended
    unmeasured: int  # how many of the pods nobody measured; they count as using nothing
    stayed: Mapping[PodKey, str]  # by pod that was left where it is, why nobody knows where it would go

    @property
    def no_longer(self) -> dict[PodKey, str]:
        """The pods that fit today and would fit nowhere, with the reasons."""
        return {pod: why for pod, why in self.recommended.nowhere.items() if pod not in self.today.nowhere}


def what_if(
    snapshot: Snapshot, specs: Mapping[PodKey, PodSpec], usage: Usage, tell: Callable[[int, int], None]
) -> WhatIf:
    """Return the three pictures, with new specs of pods that change; `tell` is called with pods placed, and all."""
    nodes = [node for node in snapshot.nodes if node.ready and not node.unschedulable and node.allocatable]
    pods = [pod for pod in snapshot.pods if pod.active and not pod.terminating]
    changed = [msgspec.structs.replace(pod, spec=specs.get(pod.key, pod.spec)) for pod in pods]
    histories = range(min(max(_PLACEMENTS // max(len(pods), 1), 1), _MOST_HISTORIES))
    outlooks, of = [], 2 * (len(histories) + 1) * len(pods)
    for turn, each in enumerate((pods, changed)):
        done = turn * of // 2
        tell(done, of)
        packed = {node.name for node in nodes}.intersection(EmptyCluster(snapshot, each).packed().used)
        placed = []
        for number in histories:
            tell(done + (number + 1) * len(pods), of)
            placed.append(EmptyCluster(snapshot, each).scheduled(number))
        outlooks.append(_outlook(nodes, usage, placed, len(packed)))
    today, recommended = outlooks
    return WhatIf(
        nodes=len(nodes),
        pods=len(pods),
        now=_outlook(nodes, usage, [Placed({pod.key: pod.node for pod in pods if pod.node})], None),
        today=today,
        recommended=recommended,
        unmeasured=sum(pod.key not in usage for pod in pods),
        stayed=placed[0].stayed,
    )


def _outlook(nodes: Sequence[Node], usage: Usage, histories: Sequence[Placed], needed: int | None) -> ClusterOutlook:
    """Return the history whose deviation of cpu is in the middle, and between which deviations all are."""
    found = [({name: _load(nodes, each, usage, name) for name in RESOURCES}, each.nowhere) for each in histories]
    loads, nowhere = sorted(found, key=lambda each: each[0][CPU].deviation)[len(found) // 2]
    for name in RESOURCES:
        deviations = [each[name].deviation for each, _ in found]
        loads = {**loads, name: replace(loads[name], least=min(deviations), most=max(deviations))}
    return ClusterOutlook(loads, needed, nowhere)


def _load(nodes: Sequence[Node], placed: Placed, usage: Usage, resource: str) -> Load:
    used = dict.fromkeys((node.name for node in nodes), 0.0)
    for pod, node in placed.nodes.items():
        if node in used:
            used[node] += usage.get(pod, {}).get(resource, 0.0)
    offered = {node.name: node.allocatable[resource] for node in nodes if node.allocatable.get(resource)}
    percents = {name: 100 * used[name] / amount for name, amount in offered.items()}
    if not percents:
        return Load(0.0, 0.0, 0.0, 0.0, "")
    highest = max(percents, key=lambda name: (percents[name], name))
    deviation = pstdev(percents.values())
    return Load(deviation, deviation, deviation, percents[highest], highest)


_HEAVY = 0.25
_HOST = "kubernetes.io/hostname"
#: Labels that differ from pod to pod, or from rollout to rollout.
_PASSING = frozenset(
    (
        *("pod-template-hash", "controller-revision-hash", "pod-template-generation"),
        *("statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"),
        *("topology.kubernetes.io/zone", "topology.kubernetes.io/region"),
    )
)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Two heavy workloads, or one with itself, and the nodes that they share."""

    first: Workload
    other: Workload
    nodes: tuple[str, ...]
    affinity: Mapping[str, Any] | None  # for the first one's template; None if no labels tell the other's pods


@dataclass(frozen=True, slots=True)
class Recommendations:
    """All that is found out about a cluster."""

    recommendations: Sequence[Recommendation]  # for each container, in the order of namespaces and names
    what_if: WhatIf | None = None  # what they would change; None if nobody asked
    neighbours: Sequence[Neighbours] = ()  # heavy workloads that share nodes
    qos: Mapping[Workload, tuple[str, str]] = field(default_factory=dict)  # of pods, today and as recommended


def pod_usage(histories: Iterable[History], pods: Mapping[PodKey, Workload]) -> dict[PodKey, dict[str, float]]:
    """Return by pod and resource the mean use in peak windows; of its workload where a pod was not measured."""
    own: dict[PodKey, dict[str, float]] = {}
    usual: dict[Workload, dict[str, float]] = {}
    for each in histories:
        by_pod: dict[str, list[Columns]] = {}
        for name, _, found in each.samples.steady().in_windows():
            by_pod.setdefault(name, []).append(found)
        for name, parts in by_pod.items():
            _add_means(own.setdefault((each.workload.namespace, name), {}), parts)
        if by_pod:
            _add_means(usual.setdefault(each.workload, {}), [part for parts in by_pod.values() for part in parts])
    return {pod: used for pod, workload in pods.items() if (used := own.get(pod) or usual.get(workload))}


def _add_means(into: dict[str, float], parts: Sequence[Columns]) -> None:
    count = sum(len(each.times) for each in parts)
    into[CPU] = into.get(CPU, 0.0) + 1000 * sum(sum(each.cpu) for each in parts) / count
    into[MEMORY] = into.get(MEMORY, 0.0) + sum(sum(each.memory) for each in parts) / count


def heavy_neighbours(snapshot: Snapshot, owners: Mapping[PodKey, Workload], usage: Usage) -> list[Neighbours]:
    """Return the heavy workloads that share nodes, those with the most nodes first."""
    offered = {node.name: node.allocatable for node in snapshot.nodes}
    heavy: dict[str, Counter[Workload]] = {}
    labels: dict[Workload, Labels] = {}
    for pod in snapshot.pods:
        owner = owners.get(pod.key)
        used, size = usage.get(pod.key, {}), offered.get(pod.node, {})
        is_heavy = any(used.get(name, 0) >= _HEAVY * size[name] for name in RESOURCES if size.get(name))
        if owner and pod.active and is_heavy:
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


def _affinity(first: Workload, other: Workload, labels: Labels) -> Mapping[str, Any] | None:
    if not labels:
        return None
    term: dict[str, Any] = {"topologyKey": _HOST, "labelSelector": {"matchLabels": dict(labels)}}
    if first.namespace != other.namespace:
        term["namespaces"] = [other.namespace]
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
