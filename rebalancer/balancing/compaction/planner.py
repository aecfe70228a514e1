"""Where the pods of one node would land, all of them together."""

from collections.abc import Sequence

from rebalancer.balancing.compaction.kept import Kept
from rebalancer.balancing.destinations import Destinations
from rebalancer.balancing.figures import with_pod_gone
from rebalancer.balancing.measured_usage import MeasuredUsage
from rebalancer.balancing.utilization import NodeUtilization, Percentages
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.eviction.causes import Cause
from rebalancer.eviction.steering import Move
from rebalancer.eviction.verdict import Refused


class Planner:
    """Tries out in the cluster's picture of the future what becomes of a node's pods, and takes that back.

    Args:
        cluster: the cluster.
        usage: what pods use.
        destinations: the nodes that may take them.
        thresholds: the resources that reasons show.
    """

    def __init__(
        self, cluster: Cluster, usage: MeasuredUsage, destinations: Destinations, thresholds: Percentages
    ) -> None:
        self._cluster = cluster
        self._usage = usage
        self._destinations = destinations
        self._thresholds = thresholds

    def moves(self, source: NodeUtilization, pods: Sequence[Pod], reason: Cause) -> tuple[Move, ...] | Kept:
        """Return a move for each pod, in their order, or the first one that has nowhere to go.

        For each one all pods of the node have gone or are about to, and the replacements of those before it are there.

        Args:
            source: the node.
            pods: all that have to go.
            reason: why.
        """
        moves: list[Move] = []
        with self._cluster.scope():
            for pod in pods:
                self._cluster.remove(pod)
            for pod in pods:
                move = self._move(source, pod, reason)
                if isinstance(move, Refused):
                    return Kept(pod, move)
                moves.append(move)
        return tuple(moves)

    def _move(self, source: NodeUtilization, pod: Pod, reason: Cause) -> Move | Refused:
        usage = self._usage.of_pod(pod)
        likely = self._destinations.likely(pod, usage)
        if isinstance(likely, Refused):
            return likely
        arrival = self._destinations.expect(pod, likely[0], self._thresholds)
        because = with_pod_gone(reason, source.points(usage)).with_figures(lands_on=arrival)
        return Move(pod, likely[0].name, tuple(node.name for node in likely), because, usage)
