"""What has to stay in use: room on the nodes that are left, nodes of each group, and what no autoscaler may remove.

An example: `keepFree` wants 20 % of cpu.  Three nodes of 10 cores are in use, with 4, 5 and 6 cores requested.  Without
the first one its 4 cores go to the other two: 15 of 20 cores are requested and 5 are free, which is 25 %.  Without the
second one nothing would be free of the last 10 cores: the second stays.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from rebalancer.balancing.excess import TOLERANCE
from rebalancer.balancing.occupants import occupants
from rebalancer.balancing.utilization import Percentages
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import PODS
from rebalancer.eviction.causes import Code
from rebalancer.eviction.verdict import Refused, refused


@dataclass(frozen=True, slots=True)
class CompactionDemands:
    """What the policy wants to be kept.

    Attributes:
        keep_free: by resource, which percentage of what the nodes in use have allocatable no pod may request.
        group_label: the label that names a node's group; nodes without it are not emptied.  Empty: all may be.
        keep_nodes: how many nodes of each group stay in use.
    """

    keep_free: Percentages
    group_label: str = ""
    keep_nodes: int = 0


class NodesInUse:
    """The nodes with pods that would have to move, and whether one of them may be emptied.

    Args:
        cluster: the cluster.
        demands: what is to be kept.
    """

    def __init__(self, cluster: Cluster, demands: CompactionDemands) -> None:
        self._cluster = cluster
        self._demands = demands
        self._nodes = {node.name: node for node in cluster.nodes if occupants(cluster, node)}

    def __contains__(self, name: object) -> bool:
        return name in self._nodes

    def add(self, node: Node) -> None:
        """Note that a node is in use: a pod came to it."""
        self._nodes[node.name] = node

    def discard(self, node: Node) -> None:
        """Note that a node is empty."""
        self._nodes.pop(node.name, None)

    def is_removable(self, node: Node) -> bool:
        """Return whether an autoscaler could remove the node, were it empty."""
        label = self._demands.group_label
        return not node.keeping and (not label or label in node.labels)

    def refusal(self, node: Node, pods: Iterable[Pod]) -> Refused | None:
        """Return why a node has to stay in use; None if it may be emptied of these pods."""
        return self._too_few_of_group(node) or self._too_little_free(node, pods)

    def _too_few_of_group(self, node: Node) -> Refused | None:
        label, keep = self._demands.group_label, self._demands.keep_nodes
        if not label:
            return None
        group = node.labels[label]
        staying = (each for each in self._nodes.values() if each is node or each.name not in self._cluster.held)
        count = sum(each.labels.get(label) == group for each in staying)
        return refused(Code.NODE_GROUP, label=label, group=group, nodes=count, keep=keep) if count <= keep else None

    def _too_little_free(self, node: Node, pods: Iterable[Pod]) -> Refused | None:
        kept = [each for each in self._nodes.values() if each.name != node.name and self._cluster.receives(each)]
        coming = list(pods)
        for name, percent in sorted(self._demands.keep_free.items()):
            offered = sum(each.allocatable.get(name, 0) for each in kept)
            free = sum(self._cluster.free(each)(name) for each in kept) - sum(_requested(pod, name) for pod in coming)
            share = free / offered * 100 if offered else 0.0
            if share < percent - TOLERANCE:
                return refused(Code.KEEP_FREE, resource=name, free=max(share, 0.0), keep=percent)
        return None


def _requested(pod: Pod, name: str) -> int:
    return 1 if name == PODS else pod.spec.requests.get(name, 0)
