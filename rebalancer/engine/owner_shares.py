"""The quarter of its pods that an owner may lose in one cycle, rounded in two ways, and the cooldown of the others."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Owner, Pod
from rebalancer.eviction.causes import Code
from rebalancer.eviction.verdict import Refused, refused

_PARTS = 4


def most_lost(number: int) -> int:
    """Return how many of so many pods an owner without a PDB may lose in one cycle: rounded down, and at least one."""
    return max(1, number // _PARTS)


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


#: Pods of one owner that were created within so much time were created together.
_TOGETHER = timedelta(seconds=15)


class Cooldown:
    """Which pods stay because they have just replaced others (the policy's key `rest`).

    A run remembers nothing of the one before; this keeps it from moving one pod again and again.  All that is known of
    the past is when an owner's pods were created.  For example, of eight pods of an owner seven are a day old, and one
    came five minutes ago: that one replaced another, and stays.  If all eight came five minutes ago, the owner has just
    started, and all may go.  If two came ten minutes ago and the others later, it is not certain: a cycle may have
    moved two of eight, and later cycles the others.  So all of them stay.  What counts is all pods as the cycle began.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._now = cluster.now
        created: defaultdict[str, list[datetime]] = defaultdict(list)
        for pod in cluster.snapshot.pods:
            if owner := pod.controller:
                created[owner.uid].append(pod.created)
        self._first_came = {uid: _first_of(times) for uid, times in created.items()}

    def refusal(self, pod: Pod, rest: timedelta) -> Refused | None:
        """Return a refusal if the pod started within this time and not with the first of its owner's pods."""
        owner, age = pod.controller, self._now - (pod.started or pod.created)
        if owner is None or age >= rest:
            return None
        first = self._first_came[owner.uid]
        if first is not None and pod.created - first <= _TOGETHER:
            return None
        return refused(Code.NEWCOMER, age_seconds=age.total_seconds())


def _first_of(created: list[datetime]) -> datetime | None:
    """Return when the first pods of an owner were created; None if one cycle may have moved so few.

    That is a quarter of them, rounded up: a PDB takes the place of the limit above, and Kubernetes rounds
    `maxUnavailable: 25%` up.  Rounded down, the second of five pods that left together would be moved again.
    """
    first = min(created)
    together = sum(each - first <= _TOGETHER for each in created)
    return first if together > -(-len(created) // _PARTS) else None
