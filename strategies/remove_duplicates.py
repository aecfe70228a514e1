"""RemoveDuplicates: spread the replicas of an owner over the nodes that take them.

Replicas are pods of the same namespace with the same owner (kind and name) and the same container images; init
containers do not matter.  Two of them on one node are duplicates.  No node is to hold more of them than the upper
average: their number, divided by the number of nodes that take them, rounded up.  A node takes a pod if the pod
tolerates its hard taints and selects it by node selector and required affinity; with fewer than two such nodes nothing
happens.  On each node the oldest replicas stay.

Only pods that may be evicted count, on any node: a protected replica is invisible.  Pods without an owner are left
alone, and so are pods with an owner of a kind in `excludeOwnerKinds`.  A pod with several owners counts with each of
them, and goes at most once.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from sys import intern
from typing import ClassVar

from rebalancer import api

FEWEST_NODES = 2

#: Namespace, kind and name of the owner, images of the containers (as one text, since a pod may have many of both).
Group = tuple[str, str, str, str]


class RemoveDuplicatesArgs(api.Args):
    """Whose replicas to spread."""

    namespaces: api.Namespaces = api.Field(api.Namespaces(), description="Namespaces to look at: include or exclude.")
    exclude_owner_kinds: api.Names = api.Field((), description="No pods with an owner of one of these kinds.")


@dataclass(slots=True)
class OwnerReplicas:
    """The replicas of one owner: how many there are, and by node all but the oldest of those that are alike."""

    total: int = 0
    duplicates: dict[str, list[api.Pod]] = field(default_factory=lambda: defaultdict(list))


class RemoveDuplicates(api.Balance[RemoveDuplicatesArgs]):
    """Spread replicas over nodes."""

    name = "RemoveDuplicates"
    Args = RemoveDuplicatesArgs
    example: ClassVar[Mapping[str, object]] = {"excludeOwnerKinds": ["DaemonSet"]}

    def run(self, cluster: api.Cluster, evict: api.Evict) -> None:
        """Evict what a node holds above the upper average, owner by owner."""
        eligible = cluster.index(api.EligibleNodes)
        for group, replicas in self._groups(cluster, evict):
            evict.count({"doubled": 1})
            nodes = _number_of_nodes(eligible, replicas)
            if not nodes:
                continue
            most = -(-replicas.total // nodes)
            for node, pods in replicas.duplicates.items():
                details = {"on_node": len(pods) + 1, "replicas": replicas.total, "most": most, "nodes": nodes}
                whose = {"namespace": group[0], "owner": {"kind": group[1], "name": group[2]}}
                because = api.Cause(api.Code.DUPLICATE, {**whose, "node": node, **details})
                _evict_all(pods[most - 1 :], because, cluster, evict)

    def _groups(self, cluster: api.Cluster, evict: api.Evict) -> list[tuple[Group, OwnerReplicas]]:
        """Return the replicas that may go by group, in the order of the groups; those without duplicates left out."""
        candidates = [pod for node in cluster.nodes for pod in cluster.active_pods_on(node) if self._selects(pod)]
        # The costly question which pods may go is asked for groups with duplicates only.
        crowded = {group for pod, is_double in _doubled(candidates) if is_double for group in _groups_of(pod)}
        evict.count({"pods": len(candidates), "doubled": 0})
        groups: dict[Group, OwnerReplicas] = defaultdict(OwnerReplicas)
        keys = {pod: [group for group in _groups_of(pod) if group in crowded] for pod in candidates}
        for pod, is_double in _doubled(pod for pod in candidates if keys[pod] and evict.evictable(pod)):
            for key in keys[pod]:
                groups[key].total += 1
                if is_double:
                    groups[key].duplicates[pod.node].append(pod)
        return sorted((each for each in groups.items() if each[1].duplicates), key=lambda each: each[0])

    def _selects(self, pod: api.Pod) -> bool:
        kinds = {owner.kind for owner in pod.owners}
        return bool(kinds) and pod.namespace in self.args.namespaces and kinds.isdisjoint(self.args.exclude_owner_kinds)


def _groups_of(pod: api.Pod) -> list[Group]:
    images = intern("\0".join(sorted(pod.spec.images)))
    return [(pod.namespace, owner.kind, owner.name, images) for owner in pod.owners]


def _doubled(pods: Iterable[api.Pod]) -> Iterator[tuple[api.Pod, bool]]:
    """Yield pods, each with whether one before it has its node, all of its owners and its images."""
    seen = set()
    for pod in pods:
        place = (pod.node, *sorted(_groups_of(pod)))
        yield pod, place in seen
        seen.add(place)


def _number_of_nodes(eligible: api.EligibleNodes, replicas: OwnerReplicas) -> int:
    """Return how many nodes take the duplicates: 0 or at least two.

    Where duplicates differ, each brings the nodes that take it; one that fewer than two nodes take brings none.
    """
    specs = (pod.spec for pods in replicas.duplicates.values() for pod in pods)
    sets = {nodes for spec in specs if len(nodes := eligible.by_constraints(spec)) >= FEWEST_NODES}
    return len(next(iter(sets))) if len(sets) == 1 else len(frozenset[str]().union(*sets))


def _evict_all(pods: Iterable[api.Pod], because: api.Cause, cluster: api.Cluster, evict: api.Evict) -> None:
    for pod in pods:
        # A pod with two owners may be gone with the first of them.
        verdict = evict(pod, because) if cluster.contains(pod) else None
        if isinstance(verdict, api.Refused) and verdict.cause.code is api.Code.NODE_LIMIT:
            return
