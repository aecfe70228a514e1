"""Relief: cure full nodes with few moves, each of a pod that some destination takes.

On each node the pod goes that cures what is above target with the least left over, or, if none does, the one that
leaves the least; but never a dearer one (see `rebalancer.model.eviction_order`) before a cheaper one that helps, pods
of Jobs last among their like, and never one that takes less than a tenth of the first excess without curing it.
Ties go by age, oldest first, then namespace and name.

Where the targets are distances from a mean, a node below its band is as wrong as one above it: once no node is above,
those above the mean give to those that are still low, none more than down to the mean.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from rebalancer.model.cluster import Cluster
from rebalancer.model.evict import Evict
from rebalancer.model.eviction_order import EvictionClass, eviction_class
from rebalancer.model.figures import Figures
from rebalancer.model.level import Excess, Level, Points, number_text
from rebalancer.model.objects import Pod
from rebalancer.model.reservations import Reservations
from rebalancer.model.resources import Resources
from rebalancer.model.usage import Percentages
from rebalancer.model.verdict import Refused, Verdict

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
    asked_for: bool = True

    def run(self, sources: Iterable[Level]) -> None:
        """Cure nodes, the one furthest above its targets first, and warn of those that are not cured.

        Raises:
            CycleOver: see `Evict`.
        """
        uncured = []
        for source in self.ordered(sources):
            self.drain(source)
            if self.figures.pods_known and source.above(self.targets).points:
                uncured.append(f"{self._reason(source)}, and nothing more may go that helps")
        for text in uncured[:_NAMED]:
            self.evict.warn(text)
        if len(uncured) > _NAMED:
            self.evict.warn(f"{len(uncured) - _NAMED} more nodes stay over, and nothing more may go that helps")

    def fill(self, sources: Iterable[Level], until: Percentages, down_to: Percentages) -> None:
        """Bring destinations up to certain percentages, once no node is above its targets.

        Args:
            sources: all nodes.
            until: by resource, at which percentage a destination needs no more.
            down_to: by resource, at which percentage a node stops giving.

        Raises:
            CycleOver: see `Evict`.
        """
        givers = list(sources)
        if not self.figures.pods_known or any(source.above(self.targets).points for source in givers):
            return
        giving = replace(self, targets=down_to, asked_for=False)
        for source in giving.ordered(givers):
            for candidate in giving.choices(source):
                if not self.reservations.keep_below(until):
                    return
                if self.evicted[source.node.name] == self.limit or _node_is_spent(giving.move(candidate, source)):
                    break

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
            if _node_is_spent(self.move(candidate, source)):
                return

    def choices(self, source: Level) -> Iterator[Candidate]:
        """Yield the best candidate for what is above target at that moment, as long as something is."""
        first = source.above(self.targets)
        if not first.points:
            return
        for group in self._groups(source):
            while best := self._best(group, source.above(self.targets), first.total):
                group.remove(best)
                yield best

    def _best(self, group: Sequence[Candidate], excess: Excess, first: float) -> Candidate | None:
        if not self.figures.pods_known:
            return next(iter(group), None)
        return choose(group, excess, first)

    def _groups(self, source: Level) -> Iterator[list[Candidate]]:
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

    def move(self, candidate: Candidate, source: Level) -> Verdict:
        """Ask for the eviction of a candidate that has a place to go, and count what it takes along.

        Raises:
            CycleOver: see `Evict`.
        """
        pod, reason = candidate.pod, self._reason(source)
        if not self.evict.passes_pre_eviction_filter(pod, reason if self.asked_for else None):
            return Refused("NodeFit", reason)
        excess = source.above(self.targets)
        place = self.reservations.reserve(pod, candidate.usage, tuple(excess.points))
        if isinstance(place, Refused):
            self._refuse(pod, reason, place)
            return place
        verdict = self.evict(pod, f"{reason}; {self._move_in_words(candidate, excess)} to {place.text}")
        if verdict.gone:
            self._release(source, candidate)
        if not verdict.gone or isinstance(verdict, Refused):
            self.reservations.cancel(place)
        else:
            self.evicted[source.node.name] += 1
        return verdict

    def _release(self, source: Level, candidate: Candidate) -> None:
        if self.figures.pods_known:
            source.release(candidate.usage)

    def _move_in_words(self, candidate: Candidate, excess: Excess) -> str:
        if not self.figures.pods_known:
            return "goes"
        return f"takes {number_text(excess.total - excess.left(candidate.points))} of them"

    def _reason(self, source: Level) -> str:
        points = number_text(source.above(self.targets).total)
        over = "over" if self.asked_for else "above the mean, and others are low"
        return f"{source.node.name} at {source.compare(self.targets)}: {points} points {over}"


def _node_is_spent(verdict: Verdict) -> bool:
    return isinstance(verdict, Refused) and verdict.by == "NodeLimit"


def _class(pod: Pod) -> tuple[EvictionClass, bool]:
    owner = pod.controller
    return (eviction_class(pod), owner is not None and owner.kind == "Job")
