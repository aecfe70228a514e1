"""Relocation: the descheduler's way to pick pods, cheapest first, as long as the destinations have room."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rebalancer.balancing.usage import NodeLoad, Room, Usage
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.eviction.evict import Evict
from rebalancer.eviction.order import cheapest_first
from rebalancer.eviction.verdict import Refused


@dataclass(frozen=True, slots=True)
class Relocation:
    """Pods leave nodes one by one, as long as the destinations have room for their usage."""

    cluster: Cluster
    evict: Evict
    usage: Usage
    room: Room

    def drain(
        self,
        source: NodeLoad,
        because: Callable[[], str],
        wanted: Callable[[Pod], bool],
        limit: int | None = None,
    ) -> None:
        """Evict pods of a node, the cheapest first, and keep its load and the room true to what went.

        Args:
            source: the node.
            because: returns why yet another pod should go, empty once none needs to.
            wanted: tells which pods come into question.
            limit: the most evictions; without it a node of whose pods the usage is unknown loses one, since nobody
                could tell when it has lost enough.

        Raises:
            CycleOver: see `Evict`.
        """
        evicted = 0
        limit = 1 if limit is None and self.usage.of_pod is None else limit
        for pod in self._candidates(source, because(), wanted):
            reason = because()
            if not reason or self.room.spent or evicted == limit:
                return
            amounts = self._amounts(pod, reason)
            if amounts is None:
                continue
            verdict = self.evict(pod, reason)
            if isinstance(verdict, Refused) and verdict.by == "NodeLimit":
                return
            if verdict.leaving:
                evicted += 1
                source.release(amounts)
                self.room.take(amounts)

    def _candidates(self, source: NodeLoad, reason: str, wanted: Callable[[Pod], bool]) -> list[Pod]:
        if not reason or self.room.spent:
            return []
        pods = self.cluster.active_pods_on(source.node)
        return cheapest_first([pod for pod in pods if wanted(pod) and self.evict.passes_filter(pod, reason)])

    def _amounts(self, pod: Pod, reason: str) -> Mapping[str, int] | None:
        """Return what the pod takes along (nothing if that is unknown of all pods), None if it cannot go."""
        if not self.room.tolerated_by(pod):
            self.evict.refuse(pod, reason, Refused("NoDestination", "tolerates the taints of no destination"))
            return None
        if not self.evict.passes_pre_eviction_filter(pod, reason):
            return None
        if self.usage.of_pod is None:
            return {}
        amounts = self.usage.of_pod(pod)
        if amounts is None:
            self.evict.refuse(pod, reason, Refused("NoUsage", "its usage is unknown"))
        return amounts
