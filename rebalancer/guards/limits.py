"""Limits on evictions per node, per namespace and in all, over a whole cycle."""

from collections import Counter
from dataclasses import dataclass

from rebalancer.cluster.pod import Pod
from rebalancer.eviction.verdict import Refused

TOTAL_LIMIT = "TotalLimit"


@dataclass(frozen=True, slots=True)
class Limits:
    """The most evictions of one cycle; None is no limit, 0 forbids all."""

    per_node: int | None = None
    per_namespace: int | None = None
    total: int | None = None

    def __bool__(self) -> bool:
        return (self.per_node, self.per_namespace, self.total) != (None, None, None)


class LimitCounter:
    """Evictions of this cycle against the limits, over all profiles and strategies."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._total = 0
        self._nodes: Counter[str] = Counter()
        self._namespaces: Counter[str] = Counter()

    def refusal(self, pod: Pod) -> Refused | None:
        """Return which limit one more eviction would exceed: total, then node, then namespace."""
        limits = self._limits
        if limits.total is not None and self._total >= limits.total:
            return Refused(TOTAL_LIMIT, f"{self._total} of {limits.total} evictions of this cycle are used")
        node = self._nodes[pod.node]
        if pod.node and limits.per_node is not None and node >= limits.per_node:
            return Refused("NodeLimit", f"{node} of {limits.per_node} evictions from {pod.node} are used")
        namespace = self._namespaces[pod.namespace]
        if limits.per_namespace is not None and namespace >= limits.per_namespace:
            used = f"{namespace} of {limits.per_namespace} evictions"
            return Refused("NamespaceLimit", f"{used} in namespace {pod.namespace} are used")
        return None

    def spend(self, pod: Pod, count: int = 1) -> None:
        """Count an eviction; with -1 take that back."""
        self._total += count
        self._namespaces[pod.namespace] += count
        if pod.node:
            self._nodes[pod.node] += count
