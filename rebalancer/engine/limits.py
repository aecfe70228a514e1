"""Limits on evictions per node, per namespace and in all, over a whole cycle."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from rebalancer.cluster.pod import Pod
from rebalancer.eviction.causes import Code
from rebalancer.eviction.verdict import Refused, refused
from rebalancer.policy.moving import Share, most


@dataclass(frozen=True, slots=True)
class Limits:
    """The most evictions of one cycle, as numbers or as parts of the pods; None means no limit, 0 forbids all."""

    per_node: int | Share | None = None
    per_namespace: int | Share | None = None
    total: int | Share | None = None

    def __bool__(self) -> bool:
        return (self.per_node, self.per_namespace, self.total) != (None, None, None)


class LimitCounter:
    """Evictions of this cycle against the limits, over all profiles and strategies.

    Limits that are parts are parts of these pods, all that there are as the cycle begins, where they have not ended.
    """

    def __init__(self, limits: Limits, pods: Iterable[Pod] = ()) -> None:
        self._limits = limits
        parts = any(isinstance(each, Share) for each in (limits.per_node, limits.per_namespace, limits.total))
        there = [pod for pod in pods if pod.active] if parts else []
        self._on = Counter(pod.node for pod in there)
        self._in = Counter(pod.namespace for pod in there)
        self._all = None if limits.total is None else most(limits.total, len(there))
        self._total = 0
        self._nodes: Counter[str] = Counter()
        self._namespaces: Counter[str] = Counter()

    def refusal(self, pod: Pod) -> Refused | None:
        """Return which limit one more eviction would exceed: total, then node, then namespace."""
        per_node, per_namespace = self._limits.per_node, self._limits.per_namespace
        if self._all is not None and self._total >= self._all:
            return refused(Code.TOTAL_LIMIT, used=self._total, limit=self._all)
        node = self._nodes[pod.node]
        if pod.node and per_node is not None and node >= (limit := most(per_node, self._on[pod.node])):
            return refused(Code.NODE_LIMIT, node=pod.node, used=node, limit=limit)
        used = self._namespaces[pod.namespace]
        if per_namespace is not None and used >= (limit := most(per_namespace, self._in[pod.namespace])):
            return refused(Code.NAMESPACE_LIMIT, namespace=pod.namespace, used=used, limit=limit)
        return None

    def spend(self, pod: Pod, count: int = 1) -> None:
        """Count an eviction; with -1 take that back."""
        self._total += count
        self._namespaces[pod.namespace] += count
        if pod.node:
            self._nodes[pod.node] += count
