"""The quarter of its pods that an owner may lose in one cycle, rounded in two ways, for a reason."""

from collections import Counter
from collections.abc import Callable, Iterable

from rebalancer.cluster.pod import Owner, Pod
from rebalancer.eviction.causes import Code
from rebalancer.eviction.verdict import Refused, refused

_PARTS = 4


def most_lost(number: int) -> int:
    """Return how many of so many pods an owner without a PDB may lose in one cycle: rounded down, and at least one."""
    return max(1, number // _PARTS)


def most_that_may_have_moved(number: int) -> int:
    """Return how many of so many pods an earlier cycle may have moved: rounded up.

    A PDB takes the place of the limit above, and Kubernetes rounds `maxUnavailable: 25%` up.  Rounded down, the second
    of five pods that left together would be moved again in the next cycle.
    """
    return -(-number // _PARTS)


class OwnerShares:
    """How many pods each owner has lost in this cycle, of those it had at its beginning.

    Args:
        pods: all pods as the cycle began; those that are terminating or have ended do not count.
        most: how many pods an owner of so many may lose.
    """

    def __init__(self, pods: Iterable[Pod], most: Callable[[int], int] = most_lost) -> None:
        self._most = most
        self._had = Counter(owner for pod in pods if pod.active and not pod.terminating and (owner := _owner(pod)))
        self._lost: Counter[tuple[str, Owner]] = Counter()

    def refusal(self, pod: Pod) -> Refused | None:
        """Return a refusal if the pod's owner has lost as many pods as it may."""
        owner = _owner(pod)
        if owner is None or self._lost[owner] < self._most(self._had[owner]):
            return None
        of = {"kind": owner[1].kind, "name": owner[1].name}
        limit = {} if self._most is most_lost else {"limit": self._most(self._had[owner])}
        return refused(Code.OWNER_SHARE, owner=of, lost=self._lost[owner], pods=self._had[owner], **limit)

    def spend(self, pod: Pod, count: int = 1) -> None:
        """Count a granted pod; with -1 take that back."""
        if owner := _owner(pod):
            self._lost[owner] += count


def _owner(pod: Pod) -> tuple[str, Owner] | None:
    return (pod.namespace, pod.controller) if pod.controller else None
