"""LowNodeUtilization and HighNodeUtilization by requests as strategies.md 3 and 4 tell them, figure by figure.

Left open there: ties among nodes go by name, ties among pods by age, namespace and name.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.taints import Taint, Toleration
from tests.models.placement import World, cheapest_first, tolerated

Percents = Mapping[str, float]


@dataclass
class Utilization:
    """What both have in common."""

    world: World
    thresholds: Percents
    number_of_nodes: int = 0
    excluded: frozenset[str] = frozenset()
    limits: Mapping[str, int] = field(default_factory=dict)  # `node`: of each by the policy; `source`: by the strategy
    gone: list[str] = field(default_factory=list)  # in order

    def __post_init__(self) -> None:
        self.tracked = {*self.thresholds, "cpu", "memory", "pods"}
        # 3.3: a snapshot, taken once at the start.
        self.used = {
            node.name: {name: sum(self.of(pod, name) for pod in self.world.active(node)) for name in self.tracked}
            for node in self.world.nodes
        }
        self.per_node: dict[str, int] = {}

    @staticmethod
    def of(pod: Pod, name: str) -> int:
        return 1 if name == "pods" else pod.spec.requests.get(name, 0)

    def percent(self, node: Node, name: str) -> float | None:
        """3.4."""
        capacity = node.allocatable.get(name)
        if capacity is None:
            return None
        return 0 if capacity == 0 else self.used[node.name][name] / capacity * 100

    def at_most(self, node: Node, low: Percents) -> bool:
        return all((self.percent(node, name) or 0) <= low[name] for name in low)

    def load(self, node: Node) -> int:
        return sum(self.used[node.name].values())

    def cap(self, node: Node, name: str, high: Percents) -> int:
        """3.6."""
        if name not in node.allocatable:
            return 0
        if name not in high:
            return node.allocatable[name]
        return math.trunc((high[name] * 0.01) * node.allocatable[name])

    def budget(self, destinations: list[Node], high: Percents) -> dict[str, int]:
        return {
            name: sum(self.cap(node, name, high) - self.used[node.name][name] for node in destinations)
            for name in self.tracked
        }

    def loop(
        self,
        sources: list[Node],
        destinations: list[Node],
        budget: dict[str, int],
        go_on: Callable[[Node], bool],
        candidate: Callable[[Pod], bool],
    ) -> None:
        """3.7, line by line."""
        world, taints = self.world, [node.taints for node in destinations]
        for node in sources:
            candidates = [pod for pod in world.active(node) if world.passes_filter(pod) and candidate(pod)]
            if not candidates or not go_on(node):
                continue
            count = 0
            for pod in cheapest_first(candidates):
                if count >= self.limits.get("source", math.inf):
                    break
                if not any(tolerates_all(pod.spec.tolerations, each) for each in taints):
                    continue
                if pod.namespace in self.excluded or not world.passes_pre_eviction_filter(pod):
                    continue
                if self.per_node.get(node.name, 0) >= self.limits.get("node", math.inf):
                    break
                self.per_node[node.name] = self.per_node.get(node.name, 0) + 1
                world.pods.remove(pod)
                self.gone.append(str(pod))
                count += 1
                for name in self.tracked:
                    self.used[node.name][name] -= self.of(pod, name)
                    budget[name] -= self.of(pod, name)
                if not go_on(node):
                    break


@dataclass
class Low(Utilization):
    targets: Percents = field(default_factory=dict)
    deviation: bool = False

    def bounds(self) -> tuple[Percents, Percents]:
        """3.4."""
        if not self.deviation:
            return self.thresholds, self.targets
        low, high = {}, {}
        for name in self.thresholds:
            known = [self.percent(node, name) for node in self.world.nodes]
            known = [each for each in known if each is not None]
            if known:
                mean = math.fsum(known) / len(known)
                low[name] = min(100, max(0, mean - self.thresholds[name]))
                high[name] = min(100, max(0, mean + self.targets[name]))
        return low, high

    def classified(self) -> tuple[list[Node], list[Node]]:
        """3.5: under, over."""
        low, high = self.bounds()
        under, over = [], []
        for node in self.world.nodes:
            if not node.unschedulable and self.at_most(node, low):
                under.append(node)
            elif any((self.percent(node, name) or 0) > high[name] for name in high):
                over.append(node)
        return under, over

    def evictions(self) -> list[str]:
        _, high = self.bounds()
        under, over = self.classified()
        if not under or len(under) <= self.number_of_nodes or len(under) == len(self.world.nodes) or not over:
            return []
        budget = self.budget(under, high)

        def go_on(node: Node) -> bool:
            above = any(self.used[node.name][name] > self.cap(node, name, high) for name in self.tracked)
            return above and all(left > 0 for left in budget.values())

        over.sort(key=lambda node: (-self.load(node), node.name))
        self.loop(over, under, budget, go_on, lambda _: True)
        return self.gone


@dataclass
class High(Utilization):
    only_thresholding: bool = False

    def evictions(self) -> list[str]:
        """4.3."""
        nodes = self.world.nodes
        under = [node for node in nodes if self.at_most(node, self.thresholds)]
        destinations = [node for node in nodes if node not in under and not node.unschedulable]
        if not under or len(under) <= self.number_of_nodes or len(under) == len(nodes) or not destinations:
            return []
        budget = self.budget(destinations, {})
        under.sort(key=lambda node: (self.load(node), node.name))
        self.loop(under, destinations, budget, lambda _: all(left > 0 for left in budget.values()), self.candidate)
        return self.gone

    def candidate(self, pod: Pod) -> bool:
        """4.2."""
        return not self.only_thresholding or any(name in pod.spec.requested for name in self.thresholds)


def tolerates_all(tolerations: tuple[Toleration, ...], taints: tuple[Taint, ...]) -> bool:
    """3.7: of any effect, and with no fewer tolerations than taints."""
    return len(tolerations) >= len(taints) and all(
        any(tolerated(each, taint) for each in tolerations) for taint in taints
    )
