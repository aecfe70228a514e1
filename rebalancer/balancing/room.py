"""What all destinations together can still take, and which taints they have: the descheduler's rule."""

from collections.abc import Iterable

from rebalancer.balancing.utilization import NodeUtilization, Percentages
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import Resources
from rebalancer.cluster.taints import Taint, Toleration, untolerated


class Room:
    """The room of some destinations, added up."""

    def __init__(self, destinations: Iterable[NodeUtilization], targets: Percentages) -> None:
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
        for name in self._left:
            self._left[name] -= amounts.get(name, 0)

    def tolerated_by(self, pod: Pod) -> bool:
        """Return whether the pod tolerates all taints of some destination, whatever their effect.

        As in the descheduler a pod needs at least as many tolerations as the node has taints.
        """
        held = pod.spec.tolerations
        known = self._tolerating.get(held)
        if known is None:
            known = self._tolerating[held] = any(_tolerated(taints, held) for taints in self._taints)
        return known


def _tolerated(taints: tuple[Taint, ...], held: tuple[Toleration, ...]) -> bool:
    return len(held) >= len(taints) and untolerated(held, taints, lambda _: True) is None
