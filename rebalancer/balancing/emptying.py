"""Emptying: take all pods off idle nodes, each node as a whole or not at all.

A node is emptied only if every pod that keeps it busy may go, all of them together, and has a destination.  Pods of
DaemonSets, mirror and static pods and those that are terminating keep no node busy.
"""

from collections.abc import Iterable, Mapping, Sequence

from rebalancer.balancing.candidates import Selection
from rebalancer.balancing.destinations import Destinations
from rebalancer.balancing.measured_usage import MeasuredUsage
from rebalancer.balancing.utilization import NodeUtilization, Percentages
from rebalancer.balancing.wording import not_above
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.eviction.evict import Evict
from rebalancer.eviction.order import cheapest_first
from rebalancer.eviction.verdict import Refused

_TOTAL_LIMIT = "TotalLimit"

#: By pod, the node it is expected on, and that node in words.
_Plan = Mapping[Pod, tuple[Node, str]]


class Emptying:
    """Takes the pods off nodes, those with the fewest pods first, then the emptiest.

    Args:
        cluster: the cluster.
        evict: whom to ask for evictions.
        usage: what pods use.
        selection: which pods come into question; a node with another one is left alone.
        destinations: the nodes that are not to be emptied.
        thresholds: at which the nodes count as idle, for the reasons.
    """

    def __init__(
        self,
        cluster: Cluster,
        evict: Evict,
        usage: MeasuredUsage,
        selection: Selection,
        destinations: Destinations,
        thresholds: Percentages,
    ) -> None:
        self._cluster = cluster
        self._evict = evict
        self._usage = usage
        self._selection = selection
        self._destinations = destinations
        self._thresholds = thresholds

    def run(self, sources: Iterable[NodeUtilization]) -> None:
        """Empty nodes; of each that is left alone one refusal tells which pod keeps it.

        Raises:
            CycleOver: see `Evict`.
        """
        busy = [(source, pods) for source in sources if (pods := self._movable(source))]
        for source, pods in sorted(busy, key=lambda each: (len(each[1]), _fullness(each[0]), each[0].node.name)):
            reason = f"{source.node.name} at {not_above(source, self._thresholds)}"
            kept = self._empty(pods, reason)
            if kept:
                pod, refusal = kept
                self._evict.refuse(pod, reason, _keeps(source, refusal))
                if refusal.by == _TOTAL_LIMIT:  # nor is there enough left for the nodes that follow, with as many pods
                    return

    def _empty(self, pods: Sequence[Pod], reason: str) -> tuple[Pod, Refused] | None:
        """Evict these pods and return None, or return which of them stays and why, and leave them all alone."""
        if kept := self._immovable(pods) or self._evict.first_refusal(pods):
            return kept
        # All destinations are found before the first pod goes; what stays after all is not expected there any more.
        with self._cluster.scope() as attempt:
            plan = self._plan(pods)
            if isinstance(plan, tuple):
                return plan
            gone = self._evict_all(pods, plan, reason)
            if len(gone) == len(pods):
                attempt.keep()
                return None
        for pod in gone:
            self._cluster.place(pod, plan[pod][0])
        return None

    def _evict_all(self, pods: Sequence[Pod], plan: _Plan, reason: str) -> list[Pod]:
        gone: list[Pod] = []
        for pod in pods:
            if not self._evict(pod, f"{reason}; goes to {plan[pod][1]}").gone:
                # Only the server can say no after all: then the node is not emptied, and the rest had better stay.
                break
            gone.append(pod)
        return gone

    def _movable(self, source: NodeUtilization) -> list[Pod]:
        return cheapest_first([pod for pod in self._cluster.active_pods_on(source.node) if not _stays_behind(pod)])

    def _immovable(self, pods: Sequence[Pod]) -> tuple[Pod, Refused] | None:
        for number, pod in enumerate(pods):
            if not self._selection.wanted(pod):
                return pod, Refused("NotSelected", "the strategy's arguments leave it alone")
            if refusal := self._selection.immovable_reason(pod):
                return pod, refusal
            if number and not self._usage.pods_known:
                return pod, Refused("NoUsage", "this source does not measure pods, so at most one leaves a node")
        return None

    def _plan(self, pods: Sequence[Pod]) -> _Plan | tuple[Pod, Refused]:
        """Expect each pod somewhere, the largest first since they are hardest to place, or tell which cannot go."""
        plan: dict[Pod, tuple[Node, str]] = {}
        for pod in sorted(pods, key=self._largest_first):
            likely = self._destinations.likely(pod, self._usage.of_pod(pod))
            if isinstance(likely, Refused):
                return pod, likely
            plan[pod] = (likely[0], self._destinations.expect(pod, likely[0], self._thresholds))
        return plan

    def _largest_first(self, pod: Pod) -> tuple[object, ...]:
        node = self._cluster.node(pod.node)
        points = NodeUtilization(node, self._usage.of_pod(pod)).percents() if node else {}
        return (-sum(points.values()), *pod.age_order)


def _fullness(source: NodeUtilization) -> float:
    return sum(source.percents().values())


def _stays_behind(pod: Pod) -> bool:
    of_daemon_set = any(owner.kind == "DaemonSet" for owner in pod.owners)
    return pod.terminating or pod.mirror or pod.static or of_daemon_set


def _keeps(source: NodeUtilization, refusal: Refused) -> Refused:
    return Refused(refusal.by, f"{refusal.reason}; it keeps {source.node.name}, which is emptied whole or not at all")
