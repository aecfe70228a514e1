"""RemoveDuplicates as strategies.md 5 tells it; a pod with several owners goes once.

Left open there: groups come by namespace, kind, name and images, nodes by name, pods by age.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from rebalancer.cluster.pod import Pod
from tests.models.placement import World, matches_node, tolerates


@dataclass
class Duplicates:
    world: World
    excluded_kinds: Collection[str] = ()
    excluded_namespaces: Collection[str] = ()
    limits: Mapping[str, int] = field(default_factory=dict)

    def candidates(self) -> list[Pod]:
        """5.2, node by node."""
        return [
            pod
            for node in self.world.nodes
            for pod in self.world.active(node)
            if pod.owners
            and pod.namespace not in self.excluded_namespaces
            and not any(owner.kind in self.excluded_kinds for owner in pod.owners)
            and self.world.passes_filter(pod)
            and self.world.passes_pre_eviction_filter(pod)
        ]

    def counted(self) -> tuple[dict[tuple[str, ...], int], dict[tuple[str, ...], dict[str, list[Pod]]]]:
        """5.4: the totals and the duplicates."""
        total: dict[tuple[str, ...], int] = {}
        duplicates: dict[tuple[str, ...], dict[str, list[Pod]]] = {}
        seen: dict[str, list[list[str]]] = {}
        for pod in self.candidates():
            known = fingerprint(pod) in seen.setdefault(pod.node, [])
            if not known:
                seen[pod.node].append(fingerprint(pod))
            for key in group_keys(pod):
                total[key] = total.get(key, 0) + 1
                if known:
                    duplicates.setdefault(key, {}).setdefault(pod.node, []).append(pod)
        return total, duplicates

    def feasible(self, pods: list[Pod]) -> set[str]:
        """5.5."""
        found: set[str] = set()
        for pod in pods:
            takers = {
                node.name
                for node in self.world.nodes
                if tolerates(pod.spec.tolerations, node.taints) and matches_node(pod.spec, node)
            }
            if len(takers) >= 2:
                found |= takers
        return found

    def evictions(self) -> list[str]:
        """5.6."""
        total, duplicates = self.counted()
        gone: list[Pod] = []
        for key in sorted(duplicates):
            nodes = self.feasible([pod for pods in duplicates[key].values() for pod in pods])
            if len(nodes) < 2:
                continue
            upper = -(-total[key] // len(nodes))
            for name in sorted(duplicates[key]):
                pods = duplicates[key][name]
                if len(pods) + 1 <= upper:
                    continue
                for pod in pods[upper - 1 :]:
                    if pod in gone:
                        continue
                    if len([each for each in gone if each.node == name]) >= self.limits.get("node", len(gone) + 1):
                        break
                    gone.append(pod)
        return [str(pod) for pod in gone]


def group_keys(pod: Pod) -> list[tuple[str, ...]]:
    """5.3."""
    return [(pod.namespace, owner.kind, owner.name, *sorted(pod.spec.images)) for owner in pod.owners]


def fingerprint(pod: Pod) -> list[str]:
    """5.3."""
    return sorted(
        f"{pod.namespace}/{owner.kind}/{owner.name}/{image}" for owner in pod.owners for image in pod.spec.images
    )
