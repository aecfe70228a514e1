"""On which nodes the pods of each owner are, so that emptying nodes does not bring them all onto one.

The scheduler spreads replicas softly unless it is told otherwise; soft taints outweigh that.
"""

from collections import Counter
from collections.abc import Iterable

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Owner, Pod
from rebalancer.eviction.steering import Move

_Key = tuple[str, Owner | None]


class Replicas:
    """Counts pods by owner and node; it follows the cluster in the present scope.

    Args:
        cluster: the cluster.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._counts: dict[_Key, Counter[str]] = {}
        for pod in cluster.pods():
            self._count(pod, pod.node, 1)
        cluster.follow(self)

    def first_gathered(self, node: Node, moves: Iterable[Move]) -> Move | None:
        """Return the first move after which all pods of its owner, now on several nodes, would be on one.

        Args:
            node: the node that these moves empty.
            moves: of all its pods.
        """
        moves = tuple(moves)
        expected: dict[_Key, set[str]] = {}
        for move in moves:
            expected.setdefault(_key(move.pod), set()).add(move.expected)
        return next((move for move in moves if self._gathers(node, move.pod, expected[_key(move.pod)])), None)

    def _gathers(self, node: Node, pod: Pod, expected: set[str]) -> bool:
        if pod.controller is None:
            return False
        now = {name for name, count in self._counts.get(_key(pod), Counter()).items() if count > 0}
        return len(now) > 1 and len((now - {node.name}) | expected) == 1

    def left(self, pod: Pod, sign: int) -> None:
        """Count a pod that went, or is back."""
        self._count(pod, pod.node, -sign)

    def came(self, pod: Pod, node: Node, sign: int) -> None:
        """Count a pod that is expected on a node, or is not any more."""
        self._count(pod, node.name, sign)

    def _count(self, pod: Pod, name: str, sign: int) -> None:
        if pod.active and not pod.terminating:
            self._counts.setdefault(_key(pod), Counter())[name] += sign


def _key(pod: Pod) -> _Key:
    return (pod.namespace, pod.controller)
