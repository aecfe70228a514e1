"""Limits on evictions per node, per namespace and in all, over a whole cycle."""

from collections import Counter
from dataclasses import dataclass

from rebalancer.cluster.pod import Pod
from rebalancer.eviction.causes import Code
from rebalancer.eviction.verdict import Refused, refused


@dataclass(frozen=True, slots=True)
class Limits:
    """The most evictions of one cycle; None means no limit, 0 forbids all."""

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
            return refused(Code.TOTAL_LIMIT, used=self._total, limit=limits.total)
        node = self._nodes[pod.node]
        if pod.node and limits.per_node is not None and node >= limits.per_node:
            return refused(Code.NODE_LIMIT, node=pod.node, used=node, limit=limits.per_node)
        namespace = self._namespaces[pod.namespace]
        if limits.per_namespace is not None and namespace >= limits.per_namespace:
            return refused(Code.NAMESPACE_LIMIT, namespace=pod.namespace, used=namespace, limit=limits.per_namespace)
        return None

    def spend(self, pod: Pod, count: int = 1) -> None:
        """Count an eviction; with -1 take that back."""
        self._total += count
        self._namespaces[pod.namespace] += count
        if pod.node:
            self._nodes[pod.node] += count
