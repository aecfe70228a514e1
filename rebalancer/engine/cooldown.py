"""The cooldown: a pod that has just replaced another one is not moved again (the policy's key `rest`).

A run remembers nothing of the one before; this keeps it from moving one pod again and again.  All that is known of the
past is when an owner's pods were created.  For example, of eight pods of an owner seven are a day old, and one came
five minutes ago: that one replaced another, and stays.  If all eight came five minutes ago, the owner has just started,
and all may go.  If two came ten minutes ago and the others later, it is not certain: a cycle may have moved two of
eight, and later cycles the others.  So all of them stay.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.engine.owner_shares import most_that_may_have_moved
from rebalancer.eviction.causes import Code
from rebalancer.eviction.verdict import Refused, refused

#: Pods of one owner that were created within so much time were created together.
_TOGETHER = timedelta(seconds=15)


class Cooldown:
    """Which pods stay because they have just come.

    Args:
        cluster: the cluster; what counts is all its pods as the cycle began.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._now = cluster.now
        self._first_came = _first_creations(cluster.snapshot.pods)

    def refusal(self, pod: Pod, rest: timedelta) -> Refused | None:
        """Return a refusal if the pod started within this time and not with the first of its owner's pods."""
        owner, age = pod.controller, self._now - (pod.started or pod.created)
        if owner is None or age >= rest:
            return None
        first = self._first_came[owner.uid]
        if first is not None and pod.created - first <= _TOGETHER:
            return None
        return refused(Code.NEWCOMER, age_seconds=age.total_seconds())


def _first_creations(pods: Iterable[Pod]) -> dict[str, datetime | None]:
    """Return when the first pods of each owner were created; None if one cycle may have moved so few."""
    created: dict[str, list[datetime]] = {}
    for pod in pods:
        if owner := pod.controller:
            created.setdefault(owner.uid, []).append(pod.created)
    return {uid: _first_of(times) for uid, times in created.items()}


def _first_of(created: list[datetime]) -> datetime | None:
    first = min(created)
    together = sum(each - first <= _TOGETHER for each in created)
    return first if together > most_that_may_have_moved(len(created)) else None
