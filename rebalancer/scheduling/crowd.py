"""Whether a pod finds room whatever others take first.

Each other pod lands on one node, on any, and before the pod.  What they can do to it is counted:

1. On each node that has room for the pod, by how many others it takes to fill it: the largest ones first.
2. Others that may keep it from a node altogether take the nodes where most would be needed.
3. If the rest are fewer than it takes to fill all remaining nodes, one of these has room at the end.

Example: three nodes have room for the pod, and beside it for 0, 1 and 2 cores.  Five others of 1 core each want in:
they fill the first node with 1 pod, the second with 2 and the third with 3.  That makes 6, and there are 5: the pod
finds room.  If one of the five had a port that the pod wants, it would take the third node; 4 are left for the first
two, which takes 3: nobody knows whether the pod finds room.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from rebalancer.cluster.resources import PODS, Resources

#: By resource, what is left of one node once the pod has what it requests.
Spare = Mapping[str, int]


class Crowd:
    """Pods that may all come first, summed up.

    Args:
        requests: what each requests.

    Attributes:
        size: how many they are.
    """

    def __init__(self, requests: Iterable[Resources]) -> None:
        self._requests = [{PODS: 1, **each} for each in requests]
        self.size = len(self._requests)
        self._sums: dict[str, list[int]] = {}

    def leaves_room(self, nodes: Sequence[Spare], blocking: int = 0) -> bool:
        """Return whether one of these nodes has room for the pod at the end.

        Args:
            nodes: the nodes that have room for the pod before the others come.
            blocking: how many of the others may keep the pod from a node altogether.
        """
        if len(nodes) > self.size:
            return True
        needed = sorted(self._needed(each) for each in nodes)
        return sum(needed[: max(len(needed) - blocking, 0)]) > self.size - blocking

    def _needed(self, spare: Spare) -> int:
        """Return how many others it takes to fill a node, the largest first; more than there are if they cannot."""
        return min(bisect_right(self._largest(name), amount) + 1 for name, amount in spare.items())

    def _largest(self, name: str) -> list[int]:
        """Return what the largest request of a resource is, the largest two together, and so on."""
        if name not in self._sums:
            amounts = sorted((each.get(name, 0) for each in self._requests), reverse=True)
            self._sums[name] = list(accumulate(amounts))
        return self._sums[name]
