"""Which pods of a node may go, which of them helps it most, and which keep it busy."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby

from rebalancer.balancing.cause_details import why_relieved
from rebalancer.balancing.usage import MeasuredUsage
from rebalancer.balancing.utilization import Excess, NodeUtilization, Percentages, Points
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import PODS, Resources
from rebalancer.eviction.causes import Cause, Code
from rebalancer.eviction.evict import Evict, EvictionClass, eviction_class
from rebalancer.eviction.verdict import Refused, refused

_LEAST_SHARE = 0.1
_DECIMALS = 9  # smaller differences do not count: sums of the same numbers in another order


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pod that may go, with its usage: as amounts, and as points of its node."""

    pod: Pod
    usage: Resources
    points: Points


def choose(candidates: Sequence[Candidate], excess: Excess, first: float) -> Candidate | None:
    """Return the candidate that best reduces what a node has above target; None if none takes enough.

    For example, a node is 10 points above.  Pods of 4, 12 and 15 points may go: the pod of 12 brings the node
    within target and takes the least beyond that.  If only pods of 4 and 7 may go, the pod of 7 leaves the least above
    target.  A pod of 0.9 does not go if 10 points were above at first: it takes less than a tenth.  Where there are too
    many pods it does: each takes one of the number of pods, and none takes more.

    The candidates are of one class, the oldest first; `first` is what was above target at the beginning, without pods.
    """
    least = 0.0 if PODS in excess.points else round(first * _LEAST_SHARE, _DECIMALS)
    ranked = ((_rank(each, excess, least), each) for each in candidates)
    helpful = [(rank, each) for rank, each in ranked if rank is not None]
    return min(helpful, key=lambda each: each[0])[1] if helpful and excess.points else None


def _rank(candidate: Candidate, excess: Excess, least: float) -> tuple[bool, float] | None:
    """Return whether points stay above target, and how many, or how many go beyond; None if it takes too little."""
    left = excess.left(candidate.points)
    if left == 0:
        return (False, round(excess.beyond(candidate.points), _DECIMALS))
    return (True, round(left, _DECIMALS)) if round(excess.total - left, _DECIMALS) >= least else None


@dataclass(slots=True)
class Selection:
    """Which pods relief, filling and emptying may move: those that the strategy's arguments want, after their rest."""

    cluster: Cluster
    evict: Evict
    usage: MeasuredUsage
    wanted: Callable[[Pod], bool]
    rest: timedelta
    spared: Mapping[str, Refused] = field(default_factory=dict)  # nodes whose load does not last, by name

    def immovable_reason(self, pod: Pod) -> Refused | None:
        """Return why a pod is not a candidate: its node is spared, or the pod rests, is too young, or uses nothing."""
        if self.spared and (refusal := self.spared.get(pod.node)):
            return refusal
        return self.usage.too_young(pod) or self.evict.resting(pod, self.rest) or self.usage.unknown(pod)

    def first_immovable(self, pods: Sequence[Pod]) -> tuple[Pod, Refused] | None:
        """Return the first of a node's pods for which the whole node has to stay as it is, and why; None if none is."""
        for number, pod in enumerate(pods):
            if not self.wanted(pod):
                return pod, refused(Code.NOT_SELECTED)
            if refusal := self.immovable_reason(pod):
                return pod, refusal
            if number and not self.usage.pods_known:
                return pod, refused(Code.NO_USAGE, pods_measured=False)
        return None

    def groups(self, source: NodeUtilization, because: Cause | None) -> Iterator[list[Candidate]]:
        """Yield the candidates of a node class by class, the oldest first; with a cause, record those that stay."""
        pods = sorted(self._movable(source, because), key=lambda pod: (_class(pod), pod.age_order))
        for _, group in groupby(pods, key=_class):
            yield [Candidate(pod, usage := self.usage.of_pod(pod), source.points(usage)) for pod in group]

    def _movable(self, source: NodeUtilization, because: Cause | None) -> Iterator[Pod]:
        for pod in self.cluster.active_pods_on(source.node):
            if self.wanted(pod) and not self.evict.filter_refusal(pod, because):
                refusal = self.immovable_reason(pod)
                if refusal is None:
                    yield pod
                elif because is not None:
                    self.evict.refuse(pod, because, refusal)


def _class(pod: Pod) -> tuple[EvictionClass, bool]:
    owner = pod.controller
    return (eviction_class(pod), owner is not None and owner.kind == "Job")


class Pool:
    """Candidates by node, before their eviction is asked for; those of a node are looked up when they are first needed.

    On nodes above the targets, pods that stay are recorded with the reason.  Each node loses `limit` pods at most.
    """

    def __init__(
        self, selection: Selection, sources: Mapping[str, NodeUtilization], targets: Percentages, limit: int | None
    ) -> None:
        self._selection, self._sources, self._targets, self._limit = selection, sources, targets, limit
        self._known: dict[str, list[tuple[int, Candidate]]] = {}
        self._lost = Counter[str]()
        self._gone: defaultdict[str, set[Pod]] = defaultdict(set)  # or excluded
        self._present: dict[str, tuple[AbstractSet[Pod], list[Candidate]]] = {}
        selection.cluster.follow(self)

    def on(self, nodes: Iterable[str]) -> list[Candidate]:
        """Return the candidates of nodes; of pods that are all alike on one node, only the oldest."""
        return [candidate for name in nodes for candidate in self.on_node(name)]

    def on_node(self, name: str) -> list[Candidate]:
        """Return the same for one node; the same list until something changes there."""
        if self._limit is not None and self._lost[name] >= self._limit:
            return []
        gone = self._gone[name]
        before, present = self._present.get(name, (None, []))
        if before != gone:
            oldest: dict[int, Candidate] = {}
            for alike, candidate in self._on(name):
                if candidate.pod not in gone:
                    oldest.setdefault(alike, candidate)
            present = list(oldest.values())
            self._present[name] = frozenset(gone), present
        return present

    def exclude(self, pod: Pod) -> None:
        """Offer this pod no more."""
        self._gone[pod.node].add(pod)

    def left(self, pod: Pod, sign: int) -> None:
        """Note that a pod has gone, or is back: many are tried, and then are back."""
        (self._gone[pod.node].add if sign > 0 else self._gone[pod.node].discard)(pod)

    def came(self, _pod: Pod, _node: Node, _sign: int) -> None:
        """Do nothing: a replacement is not a candidate."""

    def lost(self, pod: Pod) -> None:
        """Count a pod that goes towards the limit of its node."""
        self._lost[pod.node] += 1

    def _on(self, name: str) -> list[tuple[int, Candidate]]:
        """Return the candidates of a node, each with what is the same for pods that are all alike."""
        known = self._known.get(name)
        if known is None:
            source = self._sources[name]
            is_over = not source.within(self._targets)
            because = why_relieved(source, self._targets, filling=False) if is_over else None
            groups = self._selection.groups(source, because)
            shapes: dict[object, int] = {}
            known = self._known[name] = [
                (shapes.setdefault(_shape(each), len(shapes)), each) for group in groups for each in group
            ]
        return known


def _shape(candidate: Candidate) -> object:
    owner = candidate.pod.controller
    return (owner.uid if owner else candidate.pod.key, tuple(candidate.usage.items()), id(candidate.pod.spec))


def occupants(cluster: Cluster, node: Node) -> list[Pod]:
    """Return the active pods of a node without those that end with it, or are ending already, the oldest first."""
    staying = [pod for pod in cluster.active_pods_on(node) if not (pod.terminating or pod.mirror or pod.static)]
    return [pod for pod in staying if not any(owner.kind == "DaemonSet" for owner in pod.owners)]
