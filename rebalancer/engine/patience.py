"""Patience: whom a cycle leaves alone, by what is remembered of earlier ones and by what others do to pods and nodes.

Each rule is a reason to refuse with a cause of its own, like the protections; most hold for balance strategies only,
since a pod that breaks a rule should go all the same.  For example, a cycle at 12:00 moved pods of `shop/web`, and so
did one at 11:20.  That is two within six hours, so it is left alone for an hour, until 13:00 (BackOff).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.engine.owner_shares import OwnerShares
from rebalancer.eviction.causes import Cause, Code, cause
from rebalancer.eviction.verdict import Refused, refused
from rebalancer.memory.document import Memory, PastMove, owner_key
from rebalancer.memory.settling import is_open
from rebalancer.policy.trust import BackOff, Trust, most

#: Keys of taints by which others say that a node goes, or is about to.
#: Sources: the documentation of Kubernetes, of the cluster-autoscaler and of Karpenter.
_LEAVING = frozenset(
    (
        *("ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler"),
        *("karpenter.sh/disrupted", "karpenter.sh/disruption", "karpenter.sh/unregistered"),
        *("node.kubernetes.io/unschedulable", "node.cloudprovider.kubernetes.io/shutdown"),
        *("node.kubernetes.io/out-of-service", "node.cluster.x-k8s.io/outdated-revision"),
    )
)
_FIRST_MOVES = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class Recollection:
    """What a cycle knows of earlier ones.

    Attributes:
        settings: the policy's.
        memory: what is remembered, settled; an empty one if nothing is known.
        rests: why balance strategies do nothing in this cycle; None if they may.
        is_new: whether there was no memory at all.
        skipped: why nothing at all is moved in this cycle; empty if something may be.
        is_trial: whether one move may be made, to see whether its replacement becomes Ready.
    """

    settings: Trust
    memory: Memory
    rests: Cause | None = None
    is_new: bool = False
    skipped: str = ""
    is_trial: bool = False


class Patience:
    """The rules of one cycle.

    Args:
        recollection: what is known of earlier cycles.
        cluster: the cluster as the cycle begins.
    """

    def __init__(self, recollection: Recollection, cluster: Cluster) -> None:
        self.rests = recollection.rests
        settings, memory = recollection.settings, recollection.memory
        self._settings = settings
        self._cluster = cluster
        self._now = cluster.now
        self._stops = {each.key: each for each in memory.stops if each.until > cluster.now}
        self._waits = backed_off(memory.moves, settings.back_off, cluster.now)
        self._undone = {(*each.key, each.source): each for each in self._of_late(memory.moves) if each.undone}
        self._replacements = {each.replacement for each in self._of_late(memory.moves) if each.replacement}
        self._is_new = recollection.is_new or cluster.now - memory.since < _FIRST_MOVES
        self._moved: Counter[tuple[str, str]] = Counter()
        limit = settings.max_per_owner
        self._shares = None if limit is None else OwnerShares(cluster.snapshot.pods, lambda number: most(limit, number))
        self._away = self._pods_of_open_moves(memory.moves)
        for pod in self._away:
            self.spend(pod, 1, moved=False)
        for node in cluster.nodes:
            if self._node(node):
                cluster.hold(node)
        self._balance: tuple[Callable[[Pod], Refused | None], ...] = (
            self._of_node,
            self._rollout,
            self._autoscaled,
            self._finishing,
            self._back_off,
            self._undoing,
            self._first_move,
        )

    def refusal(self, pod: Pod, *, balance: bool) -> Refused | None:
        """Return why a pod is left alone for now; None if it may go.

        Args:
            pod: the pod.
            balance: whether a balance strategy asks.
        """
        return next(self._refusals(pod, balance=balance), None)

    def _refusals(self, pod: Pod, *, balance: bool) -> Iterator[Refused]:
        rules = (self._stopped, self._held_by_annotation(balance=balance), *(self._balance if balance else ()))
        for rule in (*rules, self._share):
            if refusal := rule(pod):
                yield refusal

    def spend(self, pod: Pod, count: int, *, moved: bool = True) -> None:
        """Count a pod that goes; with -1 take that back."""
        if moved:
            self._moved[owner_key(pod)] += count
        if self._shares:
            self._shares.spend(pod, count)

    def _of_late(self, moves: Iterable[PastMove]) -> list[PastMove]:
        return [each for each in moves if self._now - each.at < self._settings.undone]

    def _pods_of_open_moves(self, moves: Iterable[PastMove]) -> list[Pod]:
        """Return the replacements that are not Ready yet: their owners already lack a pod each."""
        within = self._settings.ready_within
        waited_for = {each.replacement for each in moves if each.replacement and is_open(each, self._now, within)}
        return [pod for pod in self._cluster.snapshot.pods if waited_for and pod.uid in waited_for and not pod.ready]

    def _stopped(self, pod: Pod) -> Refused | None:
        stop = self._stops.get(owner_key(pod))
        if stop is None:
            return None
        return refused(Code.OWNER_STOPPED, why=stop.why, left_seconds=(stop.until - self._now).total_seconds())

    def _held_by_annotation(self, *, balance: bool) -> Callable[[Pod], Refused | None]:
        heeded = self._settings.do_not_disrupt
        if heeded == "ignore" or (heeded == "balance" and not balance):
            return lambda _: None
        return lambda pod: refused(Code.DO_NOT_DISRUPT, annotation=pod.holding) if pod.holding else None

    def _of_node(self, pod: Pod) -> Refused | None:
        node = self._cluster.node(pod.node)
        return self._node(node) if node else None

    def _node(self, node: Node) -> Refused | None:
        """Return why a node is left alone: it is being taken out of service, or has just come."""
        if node.terminating or node.unschedulable:
            return refused(Code.LEAVING_NODE, node=node.name, sign="deleted" if node.terminating else "cordoned")
        for taint in node.taints:
            if taint.key in _LEAVING:
                return refused(Code.LEAVING_NODE, node=node.name, sign=taint.key)
        age = self._now - node.created if node.created else None
        if age is not None and age < self._settings.young_nodes:
            return refused(Code.YOUNG_NODE, node=node.name, age_seconds=age.total_seconds())
        return None

    def _rollout(self, pod: Pod) -> Refused | None:
        owner, templates = pod.controller, self._cluster.snapshot.companions.templates or {}
        template = templates.get((owner.kind, owner.uid)) if owner else None
        return refused(Code.ROLLOUT, owner=owner_key(pod)[1]) if template and template.changing else None

    def _autoscaled(self, pod: Pod) -> Refused | None:
        scaled = (self._cluster.snapshot.companions.scaled or {}).get(owner_key(pod))
        if scaled is None:
            return None
        age = self._now - scaled
        if age >= self._settings.after_scaling:
            return None
        return refused(Code.AUTOSCALED, owner=owner_key(pod)[1], age_seconds=max(0.0, age.total_seconds()))

    def _finishing(self, pod: Pod) -> Refused | None:
        owner = pod.controller
        finishing = self._cluster.snapshot.companions.finishing
        if owner is None or owner.kind != "Job" or owner.uid not in finishing:
            return None
        age = self._now - (pod.started or pod.created)
        return refused(Code.FINISHING_JOB, owner=owner_key(pod)[1], age_seconds=age.total_seconds())

    def _back_off(self, pod: Pod) -> Refused | None:
        wait = self._waits.get(owner_key(pod))
        if wait is None:
            return None
        until, times = wait
        return refused(Code.BACK_OFF, times=times, left_seconds=(until - self._now).total_seconds())

    def _undoing(self, pod: Pod) -> Refused | None:
        """Return a refusal if the pod replaced another one of late, or a move from its node was undone."""
        if pod.uid and pod.uid in self._replacements:
            return refused(Code.UNDONE, replaced=True)
        move = self._undone.get((*owner_key(pod), pod.node))
        return refused(Code.UNDONE, node=pod.node, landed=move.landed) if move else None

    def _first_move(self, pod: Pod) -> Refused | None:
        if self._is_new and self._moved[owner_key(pod)]:
            return refused(Code.FIRST_MOVE, owner=owner_key(pod)[1])
        return None

    def _share(self, pod: Pod) -> Refused | None:
        return self._shares.refusal(pod) if self._shares else None


def backed_off(
    moves: Iterable[PastMove], settings: BackOff, now: datetime
) -> Mapping[tuple[str, str], tuple[datetime, int]]:
    """Return the owners that are left alone after their moves: until when, and after how many cycles that moved them.

    What one cycle moved of an owner counts once, from the last of these pods on.
    """
    cycles: dict[tuple[str, str], dict[datetime, datetime]] = {}
    for each in moves:
        times = cycles.setdefault(each.key, {})
        times[each.cycle] = max(each.at, times.get(each.cycle, each.at))
    waits = {}
    for key, times in cycles.items():
        last = max(times.values())
        count = sum(last - each < settings.within for each in times.values())
        wait = min(settings.first * 2 ** min(count - 1, 20), settings.longest)
        if last + wait > now:
            waits[key] = (last + wait, count)
    return waits


def resting(code: Code, problem: str) -> Cause:
    """Return why balance strategies do nothing in a cycle."""
    return cause(code, message=problem)
