"""Patience: whom a cycle leaves alone, by what is remembered of earlier ones and by what others do to pods and nodes.

Each rule is a reason to refuse with a cause of its own, like the protections; most hold for balance strategies only,
since a pod that breaks a rule should go all the same.  For example, a cycle at 12:00 moved pods of `shop/web`, and so
did one at 11:20.  That is two within six hours, so it is left alone for an hour, until 13:00 (BackOff).

A move has to be worth what it costs, both in point hours: points of a node that are over its target, times hours
(docs/trust.md explains gain and price by an example).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, cached_property
from statistics import median

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.scheduler_inputs import Notes
from rebalancer.engine.limits import OwnerShares
from rebalancer.eviction.causes import Cause, Code
from rebalancer.eviction.verdict import Refused, refused
from rebalancer.memory.document import Memory, PastMove, Reading, owner_key
from rebalancer.policy.moving import BackOff, Trust, most
from rebalancer.policy.windows import closed_by_note, pause_in, paused_in_words

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

#: As long as nobody knows when an excess began, it is expected to last for so many hours.
LONG = 6.0
#: An ordinary replacement is Ready within so many seconds; a slow one counts as ten of it at most.
_READY_SECONDS, _SLOWEST = 30.0, 10.0
_QOS = {"BestEffort": 0.5, "Burstable": 1.0, "Guaranteed": 2.0}
#: One replica of so many missing is ordinary; the factor is between these two.
_ORDINARY_REPLICAS, _FEWEST, _MOST = 4, 0.5, 4.0


@dataclass(frozen=True, slots=True)
class Recollection:
    """What a cycle knows of earlier ones."""

    settings: Trust  # the policy's
    memory: Memory  # what is remembered, settled; an empty one if nothing is known
    rests: Cause | None = None  # why balance strategies do nothing in this cycle; None if they may
    is_new: bool = False  # whether there was no memory at all
    skipped: str = ""  # why nothing at all is moved in this cycle; empty if something may be
    is_trial: bool = False  # whether one move may be made, to see whether its replacement becomes Ready


class Patience:
    """The rules of one cycle, by the cluster as it begins."""

    def __init__(self, recollection: Recollection, cluster: Cluster) -> None:
        settings, memory = recollection.settings, recollection.memory
        self.rests = recollection.rests
        self._settings = settings
        self._cluster = cluster
        self._now = cluster.now
        self._key = cache(owner_key)
        self._said: dict[tuple[str, str], Refused | None] = {}  # by namespace and owner, what their annotations refuse
        self._stops = {each.key: each for each in memory.stops if each.until > cluster.now}
        self._waits = backed_off(memory.moves, settings.back_off, cluster.now)
        late = [each for each in memory.moves if cluster.now - each.at < settings.undone]
        self._undone = {(*each.key, each.source): each for each in late if each.undone}
        self._replacements = {each.replacement for each in late if each.replacement}
        self._is_new = recollection.is_new or cluster.now - memory.since < _FIRST_MOVES
        self._readings, self._ready_seconds = memory.readings, ready_seconds(memory.moves)
        self._moved: Counter[tuple[str, str]] = Counter()
        limit = settings.max_per_owner
        self._shares = None if limit is None else OwnerShares(cluster.snapshot.pods, lambda number: most(limit, number))
        # Replacements that are not Ready, also those that failed: their owners already lack a pod each.
        waited_for = {each.replacement for each in memory.moves if each.replacement and not each.was_unready}
        for pod in cluster.snapshot.pods if waited_for else ():
            if pod.uid in waited_for and not pod.ready:
                self.spend(pod, 1, moved=False)
        self._left_alone = {node.name: refusal for node in cluster.snapshot.nodes if (refusal := self._node(node))}
        for node in cluster.nodes:
            if node.name in self._left_alone:
                cluster.hold(node)
        self._for_all, self._for_balance = self._rules(balance=False), self._rules(balance=True)

    def refusal(self, pod: Pod, *, balance: bool) -> Refused | None:
        """Return why a pod is left alone for now, by a balance strategy or by others; None if it may go."""
        rules = self._for_balance if balance else self._for_all
        return next((refusal for rule in rules if (refusal := rule(pod))), None)

    def _rules(self, *, balance: bool) -> Sequence[Callable[[Pod], Refused | None]]:
        """Return the rules that can refuse a pod of this cluster, in the order in which they are asked."""
        inputs, heeded, shares = self._cluster.snapshot.scheduler_inputs, self._settings.do_not_disrupt, self._shares
        rules: Sequence[tuple[object, Callable[[Pod], Refused | None]]] = (
            (inputs.notes, self._noted),
            (self._stops, self._stopped),
            (heeded == "all" or (heeded == "balance" and balance), _holding),
            (balance and self._left_alone, lambda pod: self._left_alone.get(pod.node)),
            (balance and inputs.templates, self._rollout),
            (balance and inputs.scaled, self._autoscaled),
            (balance and inputs.finishing, self._finishing),
            (balance and self._waits, self._back_off),
            (balance and (self._undone or self._replacements), self._undoing),
            (balance and self._is_new, self._first_move),
            (shares, lambda pod: shares.refusal(pod) if shares and pod.active else None),
        )
        return [rule for applies, rule in rules if applies]

    def not_lasting(self, node: Node, targets: Mapping[str, float]) -> Refused | None:
        """Return a refusal if a node that is over targets now was so in too few of the last cycles (`lasting`)."""
        lasting = self._settings.lasting
        if lasting is None:
            return None
        before = self._readings[-(lasting.of - 1) :] if lasting.of > 1 else ()
        measured = [reading.nodes.get(node.name, {}) for reading in before]
        times = 1 + sum(any(each.get(name, 0.0) > most for name, most in targets.items()) for each in measured)
        if times >= lasting.cycles:
            return None
        return refused(Code.NOT_LASTING, node=node.name, times=times, cycles=lasting.cycles, of=lasting.of)

    def hours(self, node: Node, low: Mapping[str, float], high: Mapping[str, float]) -> float:
        """Return for how many hours a node that is outside these percentages now is expected to stay so."""
        return hours_outside(self._readings, node.name, low, high, self._now)

    def price(self, pod: Pod) -> float:
        """Return what it costs to move a pod in this cycle, in point hours; 0 where no cycle was measured before."""
        if not self._readings:
            return 0.0
        key, (replicas, lacking) = self._key(pod), self._replicas
        return price(self._settings.move_price, pod, self._ready_seconds.get(key), 1 + lacking[key], replicas[key])

    @cached_property
    def _replicas(self) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
        """How many active pods each owner has, and how many of them are not ready."""
        active = [pod for pod in self._cluster.snapshot.pods if pod.active]
        return Counter(map(self._key, active)), Counter(self._key(pod) for pod in active if not pod.ready)

    def spend(self, pod: Pod, count: int, *, moved: bool = True) -> None:
        """Count a pod that goes; with -1 take that back."""
        if not pod.active:
            return
        if moved:
            self._moved[self._key(pod)] += count
        if self._shares:
            self._shares.spend(pod, count)

    def _noted(self, pod: Pod) -> Refused | None:
        notes, said = self._cluster.snapshot.scheduler_inputs.notes, self._said
        for place in noted_places(pod):
            if place not in said:  # to read a window may take long, and a namespace may have thousands of pods
                said[place] = noted_refusal(notes[place], *place, self._now) if place in notes else None
            if refusal := said[place]:
                return refusal
        return None

    def _stopped(self, pod: Pod) -> Refused | None:
        stop = self._stops.get(self._key(pod))
        return refused(Code.OWNER_STOPPED, why=stop.why, left_seconds=self._left(stop.until)) if stop else None

    def _left(self, until: datetime) -> float:
        return (until - self._now).total_seconds()

    def _node(self, node: Node) -> Refused | None:
        state = "deleted" if node.terminating else "cordoned" if node.unschedulable else ""
        if sign := state or next((taint.key for taint in node.taints if taint.key in _LEAVING), ""):
            return refused(Code.LEAVING_NODE, node=node.name, sign=sign)
        age = self._now - node.created if node.created else self._settings.young_nodes
        is_young = age < self._settings.young_nodes
        return refused(Code.YOUNG_NODE, node=node.name, age_seconds=age.total_seconds()) if is_young else None

    def _rollout(self, pod: Pod) -> Refused | None:
        owner, templates = pod.controller, self._cluster.snapshot.scheduler_inputs.templates or {}
        template = templates.get((owner.kind, owner.uid)) if owner else None
        return refused(Code.ROLLOUT, owner=self._key(pod)[1]) if template and template.changing else None

    def _autoscaled(self, pod: Pod) -> Refused | None:
        scaled = (self._cluster.snapshot.scheduler_inputs.scaled or {}).get(self._key(pod))
        age = self._now - scaled if scaled else self._settings.after_scaling
        if age >= self._settings.after_scaling:
            return None
        return refused(Code.AUTOSCALED, owner=self._key(pod)[1], age_seconds=max(0.0, age.total_seconds()))

    def _finishing(self, pod: Pod) -> Refused | None:
        owner = pod.controller
        finishing = self._cluster.snapshot.scheduler_inputs.finishing
        if owner is None or owner.kind != "Job" or owner.uid not in finishing:
            return None
        age = self._now - (pod.started or pod.created)
        return refused(Code.FINISHING_JOB, owner=self._key(pod)[1], age_seconds=age.total_seconds())

    def _back_off(self, pod: Pod) -> Refused | None:
        until, times = self._waits.get(self._key(pod), (self._now, 0))
        return refused(Code.BACK_OFF, times=times, left_seconds=self._left(until)) if times else None

    def _undoing(self, pod: Pod) -> Refused | None:
        if pod.uid and pod.uid in self._replacements:
            return refused(Code.UNDONE, replaced=True)
        move = self._undone.get((*self._key(pod), pod.node))
        return refused(Code.UNDONE, node=pod.node, landed=move.landed) if move else None

    def _first_move(self, pod: Pod) -> Refused | None:
        return refused(Code.FIRST_MOVE, owner=self._key(pod)[1]) if self._moved[self._key(pod)] else None


def _holding(pod: Pod) -> Refused | None:
    return refused(Code.DO_NOT_DISRUPT, annotation=pod.holding) if pod.holding else None


def backed_off(
    moves: Iterable[PastMove], settings: BackOff, now: datetime
) -> Mapping[tuple[str, str], tuple[datetime, int]]:
    """Return the owners left alone: until when, and after how many cycles that moved them, each counted once."""
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


def noted_places(pod: Pod) -> Iterable[tuple[str, str]]:
    """Return whose annotations hold for a pod: its namespace, its owner, and a ReplicaSet in between."""
    direct = f"{pod.controller.kind}/{pod.controller.name}" if pod.controller else ""
    return dict.fromkeys(((pod.namespace, ""), owner_key(pod), (pod.namespace, direct)))


def noted_refusal(notes: Notes, namespace: str, owner: str, now: datetime) -> Refused | None:
    """Return a refusal by the annotations of a namespace, or of an owner in it; None if they let pods go."""
    what = f"{owner} in namespace {namespace}" if owner else f"namespace {namespace}"
    if pause := pause_in(notes.pause, now):
        return refused(Code.PAUSED, message=paused_in_words(pause, what))
    closed = closed_by_note(notes.window, now)
    return refused(Code.OUTSIDE_WINDOW, message=f"{what}: {closed}") if closed else None


def hours_outside(
    readings: Sequence[Reading], node: str, low: Mapping[str, float], high: Mapping[str, float], now: datetime
) -> float:
    """Return for how many hours a node outside these percentages is expected to stay so; readings are in order."""
    for reading in reversed(readings):
        measured = reading.nodes.get(node)
        if measured is None or not _is_outside(measured, low, high):
            return min((now - reading.at) / timedelta(hours=1), LONG)
    return LONG


def _is_outside(measured: Mapping[str, float], low: Mapping[str, float], high: Mapping[str, float]) -> bool:
    over = any(measured.get(name, 0.0) > most for name, most in high.items())
    return over or any(name in measured and measured[name] < least for name, least in low.items())


def ready_seconds(moves: Iterable[PastMove]) -> Mapping[tuple[str, str], float]:
    """Return by owner how long its replacements took to become Ready: the median of those that were seen."""
    seen: dict[tuple[str, str], list[float]] = {}
    for move in moves:
        if move.ready is not None and not move.was_unready:
            seen.setdefault(move.key, []).append(max(0.0, (move.ready - move.at).total_seconds()))
    return {key: median(seconds) for key, seconds in seen.items()}


def price(ordinary: float, pod: Pod, seconds: float | None, missing: int, replicas: int) -> float:
    """Return what it costs to move a pod, in point hours, by the price of an `ordinary` move.

    Replacements of its owner take so many seconds to become Ready; None if that was not seen.  Once the pod has gone,
    so many of the owner's replicas are missing.
    """
    waiting = min(max((seconds or 0.0) / _READY_SECONDS, 1.0), _SLOWEST)
    priority = pod.spec.priority or 0
    importance = _QOS.get(pod.qos, 1.0) * (2.0 if priority > 0 else 0.5 if priority < 0 else 1.0)
    lacking = min(max(_ORDINARY_REPLICAS * missing / max(replicas, 1), _FEWEST), _MOST)
    return ordinary * waiting * importance * lacking
