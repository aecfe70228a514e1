"""Relief: bring full nodes within their targets with few moves (docs/relief.md explains it by an example).

1. The node furthest above its targets comes first, then the others.
2. Of its pods the cheapest class is tried first; in a class the pod that helps most (see `candidates`).
3. A pod without a destination stays, and the next best is tried, until the node is within its targets, no pod helps, or
   the node may lose no more.

Single moves are made here for filling as well.  A move has to be worth what it costs: both are given in point hours
(see `rebalancer.engine.patience`).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rebalancer.balancing.candidates import Candidate, Selection, choose
from rebalancer.balancing.cause_details import why_relieved, with_pod_gone
from rebalancer.balancing.destinations import Destinations
from rebalancer.balancing.utilization import NodeUtilization, Percentages
from rebalancer.cluster.node import Node
from rebalancer.cluster.resources import PODS
from rebalancer.eviction.causes import Cause, Code, cause
from rebalancer.eviction.evict import Outlook
from rebalancer.eviction.steering import Destination
from rebalancer.eviction.verdict import Refused, Verdict, refused

#: A point below a band counts as so much of one above it: a node that is too empty hurts no pod.
_BELOW = 0.05
_NAMED = 5  # nodes that stay over and are warned of by name
_DECIMALS = 9  # smaller differences are floating-point noise: equal nodes go by name


@dataclass(frozen=True, slots=True)
class Deal:
    """What a move is expected to gain, and what it costs, in point hours; both 0 where nothing is remembered."""

    gain: float = 0.0
    price: float = 0.0

    @property
    def refusal(self) -> Refused | None:
        """A refusal if the move costs more than it gains."""
        return refused(Code.NOT_WORTH, **self.details) if self.gain < self.price else None

    @property
    def details(self) -> dict[str, float]:
        """Both numbers as the details of a cause; none where moves cost nothing."""
        return {"gain": self.gain, "price": self.price} if self.price else {}


#: Where nothing is remembered.
FREE = Deal()


@dataclass(slots=True)
class Worth:
    """Weighs moves between nodes."""

    outlook: Outlook | None  # how long nodes will be outside their bounds, and what moves cost; None: nothing
    low: Percentages  # below which a node is too empty; empty where only targets count
    high: Percentages  # above which a node is too full
    inner: Percentages  # down to where a node is brought that is too full
    _hours: dict[str, float] = field(default_factory=dict)

    def deal(self, candidate: Candidate, source: NodeUtilization, destination: NodeUtilization) -> Deal:
        """Return what it brings to move a pod now, and what it costs.

        For example, n1 is 8 points over and expected to be so for two hours.  A pod of 5 points gains 10 point hours
        there.  If it lands on n3, which is 3 points below its band since half an hour, that adds 0.05 x 3 x 0.5.
        """
        outlook, pod = self.outlook, candidate.pod
        if outlook is None or not (price := outlook.price(pod)):
            return FREE
        gain = 0.0
        if source.above(self.high).points:
            excess = source.above(self.inner)
            gain = (excess.total - excess.left(candidate.points)) * self._lasts(outlook, source)
        if short := destination.short_of(self.low):
            filled = short - destination.short_of(self.low, destination.points(candidate.usage))
            gain += _BELOW * filled * self._lasts(outlook, destination)
        return Deal(gain, price)

    def _lasts(self, outlook: Outlook, node: NodeUtilization) -> float:
        name = node.node.name
        if name not in self._hours:
            self._hours[name] = outlook.hours(node.node, node.floors(self.low), node.bounds(self.high))
        return self._hours[name]


@dataclass(slots=True)
class Moves:
    """Makes moves, and counts how many pods each node has lost.

    Where the usage of pods is not known, a node without a limit loses one: nobody could tell when it has lost enough.
    """

    selection: Selection
    destinations: Destinations
    worth: Worth | None  # None if the usage of pods is not known
    limit: int | None
    _evicted: Counter[str] = field(default_factory=Counter, init=False)

    def is_spent(self, source: NodeUtilization) -> bool:
        """Return whether a node has lost as many pods as it may."""
        limit = 1 if self.limit is None and self.worth is None else self.limit
        return self._evicted[source.node.name] == limit

    def move(
        self, candidate: Candidate, source: NodeUtilization, targets: Percentages, fills: Sequence[Node] = ()
    ) -> Verdict:
        """Ask for the eviction of a candidate that has a destination, and expect it there if it goes.

        Its node is above the targets.  It is expected on the likely node where it lands most often.  If it goes to fill
        others, `fills` are the nodes where it may land: it is expected on the first, and not recorded if it stays.
        """
        pod, excess, filling, evict = candidate.pod, source.above(targets), bool(fills), self.selection.evict
        reason = why_relieved(source, targets, filling=filling)
        if refusal := evict.pre_eviction_refusal(pod, None if filling else reason):
            return refusal
        found = self._destination(candidate, source, fills)
        if isinstance(found, Refused):
            if not filling:
                evict.refuse(pod, reason, found)
            return found
        destination, node, deal = found
        if self.worth:
            relieved = excess.total - excess.left(candidate.points)
            reason = with_pod_gone(reason, candidate.points).with_details(relieved=relieved, **deal.details)
        # The pod is expected there while its eviction is asked for; if it stays, that is taken back.
        with self.selection.cluster.scope() as attempt:
            arrival = self.destinations.expect(pod, node, tuple(excess.points))
            verdict = evict(pod, reason.with_details(lands_on=arrival), destination)
            if verdict.leaving:
                self._evicted[source.node.name] += 1
                attempt.keep()
        return verdict

    def _destination(
        self, candidate: Candidate, source: NodeUtilization, fills: Sequence[Node]
    ) -> tuple[Destination, Node, Deal] | Refused:
        """Return where a pod may land, where it is expected, and what that is worth; or why it should stay."""
        pod = candidate.pod
        found = self.destinations.landing(pod, lambda: self.selection.evict.first_refusal([pod]) is None, fills)
        if isinstance(found, Refused):
            return found
        node, likely, shares = found
        deal = self.worth.deal(candidate, source, self.destinations.known[node.name]) if self.worth else FREE
        return deal.refusal or (Destination.among(node.name, shares or likely), node, deal)


def node_is_spent(verdict: Verdict) -> bool:
    """Return whether no more may leave the node."""
    return isinstance(verdict, Refused) and verdict.cause.code is Code.NODE_LIMIT


class Relief:
    """Takes pods off nodes above their targets."""

    def __init__(self, moves: Moves, targets: Percentages) -> None:
        self._moves = moves
        self._targets = targets
        self._first_excess: dict[str, float] = {}

    def run(self, sources: Iterable[NodeUtilization]) -> None:
        """Relieve nodes, the one furthest above its targets first."""
        for source in furthest_first(sources, self._targets):
            for candidate in self._choices(source):
                if self._moves.is_spent(source) or node_is_spent(self._moves.move(candidate, source, self._targets)):
                    break

    def _choices(self, source: NodeUtilization) -> Iterator[Candidate]:
        excess = source.above(self._targets)
        if not excess.points:
            return
        # A tenth of it, the number of pods apart, is what a pod must take at least, also in a second run.
        first = self._first_excess.setdefault(source.node.name, excess.total - excess.points.get(PODS, 0.0))
        for group in self._moves.selection.groups(source, why_relieved(source, self._targets, filling=False)):
            # If the usage of pods is not known, neither is which one helps most: the oldest goes.
            known = self._moves.worth is not None
            while best := choose(group, source.above(self._targets), first) if known else next(iter(group), None):
                group.remove(best)
                yield best


def furthest_first(sources: Iterable[NodeUtilization], targets: Percentages) -> list[NodeUtilization]:
    """Return the nodes above their targets, the one furthest above first, equal ones by name."""
    above = [source for source in sources if source.above(targets).points]
    return sorted(above, key=lambda each: (-round(each.above(targets).total, _DECIMALS), each.node.name))


def staying_over(sources: Iterable[NodeUtilization], targets: Percentages) -> Iterator[Cause]:
    """Yield a warning for each of the first nodes that stay above their targets, and one for all others."""
    over = furthest_first(sources, targets)
    for source in over[:_NAMED]:
        yield cause(Code.STAYS_OVER, **why_relieved(source, targets, filling=False).details)
    if len(over) > _NAMED:
        yield cause(Code.MORE_STAY_OVER, nodes=len(over) - _NAMED)
