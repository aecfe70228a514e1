"""RemovePodsViolatingTopologySpreadConstraint as strategies.md 9 tells it.

Left open there: which of equal domains comes first (here: by value) and which of equal pods goes first (here: the
youngest).
"""

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from rebalancer.cluster.pod import Pod, SpreadConstraint
from tests.models.placement import World, age, counts_there, selected


def kept_longest(pod: Pod) -> tuple[int, int]:
    """High priority before low, pods without priority at the end."""
    return (1, 0) if pod.spec.priority is None else (0, -pod.spec.priority)


@dataclass
class Spreading:
    world: World
    kinds: Collection[str] = ("DoNotSchedule",)
    balance_node_fit: bool = True

    def evictions(self) -> list[str]:
        """Return the pods that go, sorted; the world loses them."""
        world = self.world
        population = [pod for node in world.nodes for pod in world.active(node) if world.passes_filter(pod)]
        chosen = {pod for each in {pod.namespace for pod in population} for pod in self._chosen(each, population)}
        gone = [pod for pod in chosen if world.passes_pre_eviction_filter(pod)]
        return sorted(str(pod) for pod in gone)

    def _chosen(self, namespace: str, population: list[Pod]) -> set[Pod]:
        pods = [pod for pod in population if pod.namespace == namespace]
        return {
            each
            for declarer in pods
            for constraint in declarer.spec.spread
            if constraint.when_unsatisfiable in self.kinds
            for each in self._balanced(declarer, constraint, pods)
        }

    def domains(self, declarer: Pod, constraint: SpreadConstraint, pods: list[Pod]) -> dict[str, list[Pod]]:
        key = constraint.topology_key
        nodes = [node for node in self.world.nodes if key in node.labels]
        domains = {node.labels[key]: [] for node in nodes if counts_there(declarer.spec, constraint, node)}
        for pod in pods:
            node = self.world.node(pod)
            if node in nodes and counted(declarer, constraint, pod):
                domains.setdefault(node.labels[key], []).append(pod)
        return domains

    def _balanced(self, declarer: Pod, constraint: SpreadConstraint, pods: list[Pod]) -> set[Pod]:
        """9.6, line by line."""
        chosen: set[Pod] = set()
        domains = self.domains(declarer, constraint, pods)
        order = sorted(domains, key=lambda value: (len(domains[value]), value))
        content = [self._sorted(domains[value]) for value in order]
        sizes = [len(each) for each in content]
        if not sizes or max(sizes) - min(sizes) <= constraint.max_skew:
            return chosen
        average = Fraction(sum(sizes), len(sizes))
        below = [
            node
            for value, size in zip(order, sizes, strict=True)
            for node in self.world.nodes
            if size < average and node.labels.get(constraint.topology_key) == value
            if counts_there(declarer.spec, constraint, node)
        ]
        i, j = 0, len(order) - 1
        while i < j:
            if len(content[j]) <= average:
                j -= 1
            skew = len(content[j]) - len(content[i])
            if skew <= constraint.max_skew:
                i += 1
                continue
            move = min(
                ceil(len(content[j]) - average),
                ceil(average - len(content[i])),
                ceil(Fraction(skew - constraint.max_skew, 2)),
            )
            if move <= 0:
                i += 1
                continue
            content[j].sort(key=lambda pod: self.world.fits_any_other(pod, below))
            leaving, content[j] = content[j][-move:], content[j][:-move]
            chosen |= {pod for pod in leaving if not self.balance_node_fit or self.world.fits_any_other(pod, below)}
            content[i] = content[i] + leaving
        return chosen

    def _sorted(self, pods: list[Pod]) -> list[Pod]:
        """9.5: head is kept longest."""
        by_age = sorted(pods, key=age)
        by_priority = sorted(by_age, key=kept_longest)
        return sorted(by_priority, key=lambda pod: pod.spec.node_selector is None and not pod.spec.node_affinity)


def counted(declarer: Pod, constraint: SpreadConstraint, pod: Pod) -> bool:
    keys = [key for key in constraint.match_label_keys if key in declarer.labels]
    return selected(constraint.selector, pod.labels) and all(
        pod.labels.get(key) == declarer.labels[key] for key in keys
    )
