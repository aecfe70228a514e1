"""Emptying: take all pods off idle nodes, each node as a whole or not at all.

A node is emptied only if every pod that keeps it busy may go, all of them together, and has a destination.  Pods of
DaemonSets, mirror and static pods and those that are terminating do not count.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rebalancer.balancing.candidates import Selection, occupants
from rebalancer.balancing.cause_details import keeping, underutilized, with_pod_gone
from rebalancer.balancing.destinations import Destinations
from rebalancer.balancing.measured_usage import MeasuredUsage
from rebalancer.balancing.utilization import NodeUtilization, Percentages
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.eviction.causes import Cause, Code
from rebalancer.eviction.evict import Evict, cheapest_first
from rebalancer.eviction.steering import Destination
from rebalancer.eviction.verdict import Refused


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a pod is expected: the node, how full that becomes, and which other nodes are as likely."""

    node: Node
    arrival: Mapping[str, Any]
    destination: Destination


_Plan = Mapping[Pod, _Place]


class Emptying:
    """Takes the pods off nodes, those with the fewest pods first, then the emptiest.

    Args:
        cluster: the cluster.
        evict: whom to ask for evictions.
        usage: what pods use.
        selection: which pods may be moved; a node with any other pod is left alone.
        destinations: the nodes that are not to be emptied.
        thresholds: at or below these percentages nodes count as idle; the reasons show them.
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
        """Empty nodes; for each node that is left alone, one refusal names the pod that keeps it.

        Raises:
            CycleOver: see `Evict`.
        """
        found = ((source, cheapest_first(occupants(self._cluster, source.node))) for source in sources)
        busy = [(source, pods) for source, pods in found if pods]
        for source, pods in sorted(busy, key=lambda each: (len(each[1]), each[0].fullness, each[0].node.name)):
            reason = underutilized(source, self._thresholds)
            kept = self._empty(pods, source, reason)
            if kept:
                pod, refusal = kept
                self._evict.refuse(pod, reason, keeping(source.node, refusal))
                if refusal.cause.code is Code.TOTAL_LIMIT:
                    # The nodes that follow have as many pods or more: the limit would stop them, too.
                    return

    def _empty(self, pods: Sequence[Pod], source: NodeUtilization, reason: Cause) -> tuple[Pod, Refused] | None:
        """Evict these pods and return None; if one of them may not go, evict none, and return it with the reason."""
        if kept := self._selection.first_immovable(pods) or self._evict.first_refusal(pods):
            return kept
        # All destinations are found before the first pod goes; a pod that stays is not expected there any more.
        with self._cluster.scope() as attempt:
            plan = self._plan(pods)
            if isinstance(plan, tuple):
                return plan
            gone = self._evict_all(pods, plan, source, reason)
            if len(gone) == len(pods):
                attempt.keep()
                return None
        for pod in gone:
            self._cluster.place(pod, plan[pod].node)
        return None

    def _evict_all(self, pods: Sequence[Pod], plan: _Plan, source: NodeUtilization, reason: Cause) -> list[Pod]:
        gone: list[Pod] = []
        for pod in pods:
            place, points = plan[pod], source.points(self._usage.of_pod(pod))
            why = with_pod_gone(reason, points).with_details(lands_on=place.arrival)
            if not self._evict(pod, why, place.destination).gone:
                # Only the server can still refuse: then the node is not emptied, and its other pods stay.
                break
            gone.append(pod)
        return gone

    def _plan(self, pods: Sequence[Pod]) -> _Plan | tuple[Pod, Refused]:
        """Return where each pod is expected, the largest placed first as the hardest, or the pod that cannot go."""
        plan: dict[Pod, _Place] = {}
        for pod in self._usage.largest_first(pods):
            likely = self._destinations.likely(pod, self._usage.of_pod(pod))
            if isinstance(likely, Refused):
                return pod, likely
            destination = self._destinations.placement(pod, likely, goes=lambda: True)
            if isinstance(destination, Refused):
                return pod, destination
            first = self._cluster.node(destination.nodes[0])
            assert first is not None
            plan[pod] = _Place(first, self._destinations.expect(pod, first, self._thresholds), destination)
        return plan
