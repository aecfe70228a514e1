"""Replacements of the pods of a wave, followed from the eviction until they are bound and Ready.

A replacement is a pod of the same controller that was not there before the wave.  Some controllers (StatefulSets) wait
until the old pod is gone.  The old pod is seen meanwhile, and the wait lasts at least its grace period and 10 s.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rebalancer.cluster.pod import Pod
from rebalancer.eviction.steering import Landing, Move
from rebalancer.eviction.verdict import Granted, Refused, Unknown, Verdict
from rebalancer.run.seen_pods import SeenPod

#: Time for a replacement to be created and bound once the old pod is gone.
_AFTER_GRACE_SECONDS = 10.0


@dataclass(slots=True)
class _Arrival:
    """What is known of the replacement of one pod.

    Attributes:
        is_in_doubt: whether the pod may not have gone at all.
        is_moved_by_others: whether another controller moves the pod in its own time: its replacement may come later.
        is_expected: whether a replacement can come: the pod has a controller, and has gone.
        until: when the wait for it ends, in seconds after the evictions.
        ready_seconds: when it was first seen Ready.
    """

    move: Move
    is_in_doubt: bool
    is_moved_by_others: bool
    is_expected: bool
    until: float
    seen: SeenPod | None = None
    ready_seconds: float | None = None

    @property
    def is_complete(self) -> bool:
        return not self.is_expected or self.ready_seconds is not None

    def old(self, pod: SeenPod) -> None:
        """Record that the old pod is still there."""
        if pod.leaving:
            if self.seen is None:
                self.until = max(self.until, pod.grace_seconds + _AFTER_GRACE_SECONDS)
        elif self.is_in_doubt:
            self.is_expected = False

    def replacement(self, pod: SeenPod, seconds: float) -> None:
        """Record the replacement as it is seen now."""
        self.seen = pod
        if pod.ready and self.ready_seconds is None:
            self.ready_seconds = seconds

    def lost(self) -> None:
        """Record that the replacement has gone itself, as when its node was deleted: the next one is waited for."""
        self.seen = self.ready_seconds = None

    def landing(self, *, is_over: bool) -> Landing:
        """Return what became of the replacement.

        Args:
            is_over: whether the wait was completed; if not, a replacement may still come, or get a node.
        """
        node = self.seen.node if self.seen else None
        name = self.seen.name if self.seen and (node or is_over) else ""
        is_missing = is_over and self.is_expected and not self.is_moved_by_others and self.seen is None
        return Landing(self.move, node, name, self.ready_seconds, is_missing)


class Arrivals:
    """The replacements of one wave.

    Args:
        moved: the moves whose pods go, with the answers to their evictions.
        known: UIDs of the pods that were there before the first eviction.
        settle_seconds: the shortest wait for each replacement that does not become Ready.
        restarted: returns the Deployment whose rollout moves a pod; empty if the pod is evicted.
    """

    def __init__(
        self,
        moved: Sequence[tuple[Move, Verdict]],
        known: frozenset[str],
        settle_seconds: float,
        restarted: Callable[[Pod], str] = lambda _: "",
    ) -> None:
        self._restarted = restarted
        self._known = known
        self._arrivals = [
            _Arrival(
                move, isinstance(verdict, Unknown), _moved_by_others(verdict), bool(owner_uid(move)), settle_seconds
            )
            for move, verdict in moved
        ]

    def look(self, pods: Sequence[SeenPod], seconds: float) -> None:
        """Record which pods are there now.

        Args:
            pods: of all namespaces of the wave.
            seconds: since the evictions.
        """
        by_uid = {pod.uid: pod for pod in pods}
        for each in self._arrivals:
            if old := by_uid.get(each.move.pod.uid):
                each.old(old)
        self._drop_those_that_went(by_uid)
        taken = {each.seen.uid for each in self._arrivals if each.seen}
        new = [pod for pod in pods if pod.owner and pod.uid not in self._known and not pod.is_out]
        for each in self._arrivals:
            found = by_uid.get(each.seen.uid) if each.seen else self._first(each.move, new, taken)
            if found and each.is_expected:
                taken.add(found.uid)
                each.replacement(found, seconds)

    def _first(self, move: Move, new: Sequence[SeenPod], taken: set[str]) -> SeenPod | None:
        """Return the new pod that replaces this one: the one with its name if any, else the oldest of its controller.

        After a rollout it is of another ReplicaSet; the names of its pods begin with that of the Deployment.
        """
        rollout = self._restarted(move.pod)
        found = [pod for pod in new if pod.uid not in taken]
        if rollout:
            mine = [pod for pod in found if pod.name.rsplit("-", 2)[0] == rollout]
        else:
            mine = [pod for pod in found if pod.owner == owner_uid(move)]
        return min(mine, key=lambda pod: (pod.name != move.pod.name, pod.created, pod.name), default=None)

    def _drop_those_that_went(self, by_uid: dict[str, SeenPod]) -> None:
        for each in self._arrivals:
            if each.seen and ((now := by_uid.get(each.seen.uid)) is None or now.is_out):
                each.lost()

    def is_over(self, seconds: float) -> bool:
        """Return whether the wait is over: each replacement is Ready, or its time is up."""
        return all(each.is_complete or seconds >= each.until for each in self._arrivals)

    def landings(self, *, is_over: bool) -> tuple[Landing, ...]:
        """Return what became of each, in the order of the moves."""
        return tuple(each.landing(is_over=is_over) for each in self._arrivals)


def _moved_by_others(verdict: Verdict) -> bool:
    return isinstance(verdict, Refused) or (isinstance(verdict, Granted) and verdict.background)


def owner_uid(move: Move) -> str:
    """Return the UID of the controller that replaces the pod; empty where none does."""
    controller = move.pod.controller
    return controller.uid if controller else ""
