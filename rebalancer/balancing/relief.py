"""Relief: cure full nodes with few moves, each of a pod that some destination takes.

On each node the pod goes that cures what is above target with the least left over, or, if none does, the one that
leaves the least; but never a dearer one (see `rebalancer.eviction.order`) before a cheaper one that helps, pods
of Jobs last among their like, and never one that takes less than a tenth of the first excess without curing it.
Ties go by age, oldest first, then namespace and name.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from rebalancer.balancing.figures import Figures
from rebalancer.balancing.level import Excess, Level, Points, number_text
from rebalancer.balancing.reservations import Landing, Reservation, Reservations
from rebalancer.balancing.usage import Percentages
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import Resources
from rebalancer.eviction.evict import Evict
from rebalancer.eviction.order import EvictionClass, eviction_class
from rebalancer.eviction.verdict import Refused, Verdict

_LEAST_SHARE = 0.1
_NAMED = 5  # nodes that stay over and are warned of by name
_DECIMALS = 9  # what differs by less is equal: sums of the same numbers in another order


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pod that may go, with what it takes along: amounts, and points of its node."""

    pod: Pod
    usage: Resources
    points: Points


def choose(candidates: Sequence[Candidate], excess: Excess, first: float) -> Candidate | None:
    """Return the candidate that does most for what a node has above target, None if none does enough.

    Args:
        candidates: of one class, the oldest first.
        excess: what is above target now.
        first: the sum that was above target at the beginning.
    """
    least = round(first * _LEAST_SHARE, _DECIMALS)
    ranked = ((_rank(each, excess, least), each) for each in candidates)
    helpful = [(rank, each) for rank, each in ranked if rank is not None]
    return min(helpful, key=lambda each: each[0])[1] if helpful and excess.points else None


def _rank(candidate: Candidate, excess: Excess, least: float) -> tuple[bool, float] | None:
    """Return whether the candidate leaves anything, and how much of what is left over; None if it takes too little."""
    left = excess.left(candidate.points)
    if left == 0:
        return (False, round(excess.beyond(candidate.points), _DECIMALS))
    return (True, round(left, _DECIMALS)) if round(excess.total - left, _DECIMALS) >= least else None


@dataclass(frozen=True, slots=True)
class Relief:
    """Takes pods off nodes above their targets.

    Attributes:
        targets: by resource, above which percentage a node loses pods.
        wanted: tells which pods come into question.
        limit: the most evictions from each node; without it a node of whose pods the usage is unknown loses one, since
            nobody could tell when it has lost enough.
        evicted: how many pods each node has lost.
        firsts: by node, how many points it was above its targets at first.
        asked_for: whether pods that may not go are recorded.
    """

    cluster: Cluster
    evict: Evict
    figures: Figures
    reservations: Reservations
    targets: Percentages
    wanted: Callable[[Pod], bool]
    limit: int | None = None
    evicted: Counter[str] = field(default_factory=Counter)
    firsts: dict[str, float] = field(default_factory=dict)
    asked_for: bool = True

    def run(self, sources: Iterable[Level]) -> None:
        """Cure nodes, the one furthest above its targets first.

        Raises:
            CycleOver: see `Evict`.
        """
        for source in self.ordered(sources):
            self.drain(source)

    def warn(self, sources: Iterable[Level]) -> None:
        """Tell which nodes stay above their targets, as far as that is known."""
        uncured = self.ordered(sources) if self.figures.pods_known else []
        for source in uncured[:_NAMED]:
            self.evict.warn(f"{self._reason(source)}, and nothing more may go that helps")
        if len(uncured) > _NAMED:
            self.evict.warn(f"{len(uncured) - _NAMED} more nodes stay over, and nothing more may go that helps")

    def ordered(self, sources: Iterable[Level]) -> list[Level]:
        """Return the nodes above their targets, the one furthest above first."""
        above = [source for source in sources if source.above(self.targets).points]
        return sorted(above, key=lambda each: (-each.above(self.targets).total, each.node.name))

    def drain(self, source: Level) -> None:
        """Evict pods of one node until it is within its targets or no pod that may go helps any more.

        Raises:
            CycleOver: see `Evict`.
        """
        limit = 1 if self.limit is None and not self.figures.pods_known else self.limit
        for candidate in self.choices(source):
            if self.evicted[source.node.name] == limit:
                return
            if node_is_spent(self.move(candidate, source)):
                return

    def choices(self, source: Level) -> Iterator[Candidate]:
        """Yield the best candidate for what is above target at that moment, as long as something is."""
        excess = source.above(self.targets)
        if not excess.points:
            return
        first = self.firsts.setdefault(source.node.name, excess.total)
        for group in self.groups(source):
            while best := self._best(group, source.above(self.targets), first):
                group.remove(best)
                yield best

    def _best(self, group: Sequence[Candidate], excess: Excess, first: float) -> Candidate | None:
        if not self.figures.pods_known:
            return next(iter(group), None)
        return choose(group, excess, first)

    def groups(self, source: Level) -> Iterator[list[Candidate]]:
        """Yield the candidates class by class, each the oldest first."""
        pods = sorted(self._candidates(source), key=lambda pod: (_class(pod), pod.age_order))
        for _, group in groupby(pods, key=_class):
            yield [Candidate(pod, self.figures.taken(pod), source.points(self.figures.taken(pod))) for pod in group]

    def _candidates(self, source: Level) -> Iterator[Pod]:
        reason = self._reason(source)
        for pod in self.cluster.active_pods_on(source.node):
            if self.wanted(pod) and self.evict.passes_filter(pod, reason if self.asked_for else None):
                if stuck := self.figures.why_stuck(pod):
                    self._refuse(pod, reason, stuck)
                else:
                    yield pod

    def _refuse(self, pod: Pod, reason: str, refusal: Refused) -> None:
        if self.asked_for:
            self.evict.refuse(pod, reason, refusal)

    def move(self, candidate: Candidate, source: Level, landing: Landing | None = None) -> Verdict:
        """Ask for the eviction of a candidate that has a place to go, and count what it takes along.

        Args:
            candidate: the pod that would go.
            source: its node.
            landing: which of its prospects to charge; by default the first.

        Raises:
            CycleOver: see `Evict`.
        """
        pod, reason = candidate.pod, self._reason(source)
        if not self.evict.passes_pre_eviction_filter(pod, reason if self.asked_for else None):
            return Refused("NodeFit", reason)
        excess = source.above(self.targets)
        place = self._place(candidate, tuple(excess.points), landing)
        if isinstance(place, Refused):
            self._refuse(pod, reason, place)
            return place
        verdict = self.evict(pod, f"{reason}; {self._move_in_words(candidate, excess)} to {place.text}")
        if verdict.gone:
            self._release(source, candidate)
        if verdict.leaving:
            self.evicted[source.node.name] += 1
        else:
            self.reservations.cancel(place)
        return verdict

    def _place(self, candidate: Candidate, names: Sequence[str], landing: Landing | None) -> Reservation | Refused:
        if landing is None:
            return self.reservations.reserve(candidate.pod, candidate.usage, names)
        return self.reservations.keep(candidate.pod, candidate.usage, names, landing)

    def _release(self, source: Level, candidate: Candidate) -> None:
        if self.figures.pods_known:
            source.release(candidate.usage)

    def _move_in_words(self, candidate: Candidate, excess: Excess) -> str:
        if not self.figures.pods_known or not excess.points:
            return "goes"
        return f"takes {number_text(excess.total - excess.left(candidate.points))} of them"

    def _reason(self, source: Level) -> str:
        excess = source.above(self.targets)
        if not excess.points:
            return f"{source.node.name} within its band, and others are low"
        points = number_text(excess.total)
        over = "over" if self.asked_for else "above the mean, and others are low"
        return f"{source.node.name} at {source.compare(self.targets)}: {points} points {over}"


def node_is_spent(verdict: Verdict) -> bool:
    """Tell whether no more may leave the node."""
    return isinstance(verdict, Refused) and verdict.by == "NodeLimit"


def _class(pod: Pod) -> tuple[EvictionClass, bool]:
    owner = pod.controller
    return (eviction_class(pod), owner is not None and owner.kind == "Job")
