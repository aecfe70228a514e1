"""Relocation: the descheduler's way to pick pods, cheapest first, as long as the destinations have room."""

from collections.abc import Callable, Sequence
from functools import partial

from rebalancer.balancing.cause_details import above_caps, underutilized, with_pod_gone
from rebalancer.balancing.usage import Usage
from rebalancer.balancing.utilization import Bounds, NodeUtilization, Percentages
from rebalancer.balancing.weighing import UsageWeighing
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import Resources
from rebalancer.cluster.taints import Taint, Toleration, untolerated
from rebalancer.eviction.causes import Cause, Code
from rebalancer.eviction.evict import Evict, cheapest_first
from rebalancer.eviction.observation import NONE_OVER, NONE_RECEIVES, TOO_FEW_UNDER
from rebalancer.eviction.verdict import Refused, refused


class Room:
    """The room of some destinations, added up; the report expects the pods that come on the emptiest of them."""

    def __init__(self, destinations: Sequence[NodeUtilization], targets: Percentages, weighing: UsageWeighing) -> None:
        weighing.expect_on(destinations)
        self._weighing = weighing
        self._left: dict[str, int] = {}
        self._taints: set[tuple[Taint, ...]] = set()
        self._tolerating: dict[tuple[Toleration, ...], bool] = {}
        for each in destinations:
            self._taints.add(each.node.taints)
            for name, left in each.headroom(targets).items():
                self._left[name] = self._left.get(name, 0) + left

    @property
    def spent(self) -> bool:
        """Whether any tracked resource has nothing left; then no more pods may come."""
        return any(left <= 0 for left in self._left.values())

    def take(self, amounts: Resources) -> None:
        """Count the usage of a pod that comes."""
        self._weighing.arrive(amounts)
        for name in self._left:
            self._left[name] -= amounts.get(name, 0)

    def tolerated_by(self, pod: Pod) -> bool:
        """Return whether the pod tolerates all taints of some destination, whatever their effect.

        As in the descheduler a pod needs at least as many tolerations as the node has taints.
        """
        own = pod.spec.tolerations
        if own not in self._tolerating:
            self._tolerating[own] = any(
                len(own) >= len(taints) and untolerated(own, taints, lambda _: True) is None for taints in self._taints
            )
        return self._tolerating[own]


class Relocation:
    """Pods leave nodes one by one, up to the limit of each, as long as the destinations have room for their usage.

    Where the usage of pods is not known, a node without a limit loses one: nobody could tell when it has lost enough.
    """

    def __init__(
        self, cluster: Cluster, evict: Evict, usage: Usage, wanted: Callable[[Pod], bool], limit: int | None = None
    ) -> None:
        self._cluster = cluster
        self._evict = evict
        self._usage = usage
        self._wanted = wanted
        self._limit = 1 if limit is None and usage.of_pod is None else limit

    def relieve(self, bounds: Bounds, number_of_nodes: int) -> None:
        """Take pods off overutilized nodes, the fullest first, if more than this number are underutilized."""
        sources = self._usage.sources(self._cluster)
        band = bounds.of([each for each in sources if each.node.name not in self._cluster.held])
        low, high = band.low, band.high
        under = [peak for peak in self._destinations() if peak.within(low)]
        over = [source for source in sources if not source.within(high)]
        few = len(under) <= max(number_of_nodes, 0)
        weighing = UsageWeighing(sources, self._usage.of_pod, low, high, self._cluster.receives)
        counts = {"nodes": len(sources), "over": len(over), "under": len(under)}
        obstacles = ((not over, NONE_OVER), (not under, NONE_RECEIVES), (few, TOO_FEW_UNDER))
        with weighing.told(self._cluster, self._evict, counts, obstacles, number_of_nodes):
            if not few:
                room = Room(under, high, weighing)
                for source in sorted(over, key=lambda each: (-each.total, each.node.name)):
                    self._drain(source, room, partial(above_caps, source, high))

    def empty(self, thresholds: Percentages, number_of_nodes: int) -> None:
        """Take the pods off underutilized nodes, the emptiest first, if they are more than this number."""
        sources = self._usage.sources(self._cluster)
        under = [source for source in sources if source.within(thresholds)]
        idle = {source.node.name for source in under}
        destinations = [peak for peak in self._destinations() if peak.node.name not in idle]
        weighing = UsageWeighing(sources, self._usage.of_pod, thresholds, {})
        with weighing.while_emptying(self._cluster, self._evict, under, under, destinations, number_of_nodes) as may_go:
            if may_go:
                room = Room(destinations, {}, weighing)
                for source in sorted(under, key=lambda each: (each.total, each.node.name)):
                    self._drain(source, room, partial(underutilized, source, thresholds))

    def _destinations(self) -> list[NodeUtilization]:
        return [peak for peak in self._usage.destinations(self._cluster) if self._cluster.receives(peak.node)]

    def _drain(self, source: NodeUtilization, room: Room, because: Callable[[], Cause | None]) -> None:
        """Evict pods of a node, the cheapest first; `because` returns why one more should go, None if none needs to.

        The node's usage falls as pods go.  Nobody knows where they will run, so the room of all destinations shrinks.
        """
        evicted = 0
        reason = because()
        for pod in self._candidates(source, room, reason):
            if reason is None or room.spent or evicted == self._limit:
                return
            amounts = self._amounts(pod, room, reason)
            if amounts is None:
                continue
            verdict = self._evict(pod, with_pod_gone(reason, source.points(amounts)) if amounts else reason)
            if isinstance(verdict, Refused) and verdict.cause.code is Code.NODE_LIMIT:
                return
            if verdict.gone:
                reason = because()
            if verdict.leaving:
                evicted += 1
                room.take(amounts)

    def _candidates(self, source: NodeUtilization, room: Room, reason: Cause | None) -> list[Pod]:
        if reason is None or room.spent:
            return []
        pods = self._cluster.active_pods_on(source.node)
        return cheapest_first(
            [pod for pod in pods if self._wanted(pod) and not self._evict.filter_refusal(pod, reason)]
        )

    def _amounts(self, pod: Pod, room: Room, reason: Cause) -> Resources | None:
        """Return what the pod uses (empty if the source does not know pods); None if it cannot go."""
        if not room.tolerated_by(pod):
            self._evict.refuse(pod, reason, refused(Code.NO_DESTINATION, tolerated=False))
            return None
        if self._evict.pre_eviction_refusal(pod, reason):
            return None
        if self._usage.of_pod is None:
            return {}
        amounts = self._usage.of_pod(pod)
        if amounts is None:
            self._evict.refuse(pod, reason, refused(Code.NO_USAGE))
        return amounts
