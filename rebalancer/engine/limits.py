"""Limits on evictions over a cycle, the share of its pods that an owner may lose, and the cooldown of its new pods."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Owner, Pod
from rebalancer.eviction.causes import Code
from rebalancer.eviction.verdict import Refused, refused
from rebalancer.policy.moving import Share, most


@dataclass(frozen=True, slots=True)
class Limits:
    """The most evictions of one cycle, as numbers or as parts of the pods; None means no limit, 0 forbids all."""

    per_node: int | Share | None = None
    per_namespace: int | Share | None = None
    total: int | Share | None = None

    def __bool__(self) -> bool:
        return (self.per_node, self.per_namespace, self.total) != (None, None, None)


#: What evictions are counted by, in the order in which limits are asked: an attribute of the pod, or all together.
_BY = {"": Code.TOTAL_LIMIT, "node": Code.NODE_LIMIT, "namespace": Code.NAMESPACE_LIMIT}


def _places(pod: Pod) -> list[tuple[str, str]]:
    """Return what an eviction of the pod is counted by, with the names; a pod may have no node."""
    named = [("", ""), ("node", pod.node), ("namespace", pod.namespace)]
    return named if pod.node else [named[0], named[2]]


class LimitCounter:
    """Evictions of this cycle against the limits; parts are of these pods as it begins, where they have not ended."""

    def __init__(self, limits: Limits, pods: Iterable[Pod] = ()) -> None:
        self._most = dict(zip(_BY, (limits.total, limits.per_node, limits.per_namespace), strict=True))
        counted = any(isinstance(each, Share) for each in self._most.values())
        self._had = Counter(place for pod in pods if counted and pod.active for place in _places(pod))
        self._used: Counter[tuple[str, str]] = Counter()

    def refusal(self, pod: Pod) -> Refused | None:
        """Return which limit one more eviction would exceed: total, then node, then namespace."""
        for by, name in _places(pod):
            used, limit = self._used[by, name], self._most[by]
            if limit is not None and used >= (allowed := most(limit, self._had[by, name])):
                return refused(_BY[by], **({by: name} if by else {}), used=used, limit=allowed)
        return None

    def spend(self, pod: Pod, count: int = 1) -> None:
        """Count an eviction; with -1 take that back."""
        for place in _places(pod):
            self._used[place] += count


_PARTS = 4


def most_lost(number: int) -> int:
    """Return how many of so many pods an owner without a PDB may lose in one cycle: rounded down, and at least one."""
    return max(1, number // _PARTS)


class OwnerShares:
    """How many of its active pods each owner has lost in this cycle, of those at its beginning, and how many it may."""

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
