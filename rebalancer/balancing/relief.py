"""Relief: bring full nodes within their targets with few moves, each of a pod that some destination takes.

1. The node furthest above its targets comes first, then the others.
2. Of its pods the cheapest class is tried first (see `rebalancer.eviction.evict`); in a class, pods of Jobs are last.
3. In a class the pod goes that brings the node within target and takes the least beyond that.  If none does, the pod
   goes that leaves the least above target.  Ties go by age, oldest first, then namespace and name.  A pod that does not
   bring the node within target has to take at least a tenth of the node's first excess, unless the number of pods is
   above target: each pod takes one of that.
4. A pod without a destination stays, and the next best is tried, until the node is within its targets, no pod helps, or
   the node may lose no more.

An example: targets are 50 % of cpu; n1 uses 75 %, n2 60 %.  n1 is 25 points above and goes first.  Pods of 30, 20 and 6
points may leave it.  The pod of 30 brings n1 to 45 %.  If it has no destination, the pod of 20 goes and leaves 5 points
above; then the pod of 6 goes, and n1 is at 49 %.  Then n2 follows.

Single moves, of filling as well: ask for the eviction of a pod that has a destination, and expect it there.  A move has
to be worth what it costs: both are given in point hours (see `rebalancer.engine.patience`).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rebalancer.balancing.candidates import Candidate, Selection, choose
from rebalancer.balancing.cause_details import why_relieved, with_pod_gone
from rebalancer.balancing.destinations import Destinations
from rebalancer.balancing.utilization import Excess, NodeUtilization, Percentages
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.eviction.causes import Cause, Code, cause
from rebalancer.eviction.evict import Evict, Outlook
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
        return refused(Code.NOT_WORTH, **self.figures) if self.gain < self.price else None

    @property
    def figures(self) -> dict[str, float]:
        """Both numbers as the figures of a cause; none where moves cost nothing."""
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
    _prices: dict[Pod, float] = field(default_factory=dict)

    def deal(self, candidate: Candidate, source: NodeUtilization, destination: NodeUtilization) -> Deal:
        """Return what it brings to move a pod now, and what it costs.

        For example, n1 is 8 points over and expected to be so for two hours.  A pod of 5 points gains 10 point hours
        there.  If it lands on n3, which is 3 points below its band since half an hour, that adds 0.05 x 3 x 0.5.
        """
        outlook, pod = self.outlook, candidate.pod
        if outlook is None:
            return FREE
        if pod not in self._prices:
            self._prices[pod] = outlook.price(pod)
        price = self._prices[pod]
        if not price:
            return FREE
        gain = 0.0
        if source.above(self.high).points:
            excess = source.above(self.inner)
            gain = (excess.total - excess.left(candidate.points)) * self._lasts(outlook, source)
        if short := destination.short_of(self.low, {}):
            filled = short - destination.short_of(self.low, destination.points(candidate.usage))
            gain += _BELOW * filled * self._lasts(outlook, destination)
        return Deal(gain, price)

    def _lasts(self, outlook: Outlook, node: NodeUtilization) -> float:
        name = node.node.name
        if name not in self._hours:
            self._hours[name] = outlook.hours(node.node, node.bounds(self.low), node.bounds(self.high))
        return self._hours[name]


@dataclass(frozen=True, slots=True)
class Purpose:
    """Why pods leave a node."""

    targets: Percentages  # by resource, above which percentage a node loses pods
    filling: bool = False  # whether they go to fill other nodes; then pods that stay are not recorded

    def reason(self, source: NodeUtilization) -> Cause:
        """Return why pods should leave this node now."""
        return why_relieved(source, self.targets, filling=self.filling)


class Moves:
    """Makes moves, and counts how many pods each node has lost.

    Where the usage of pods is not known, so that nobody weighs what a move is worth, a node loses one if there is no
    limit: nobody could tell when it has lost enough.
    """

    def __init__(
        self,
        cluster: Cluster,
        evict: Evict,
        selection: Selection,
        destinations: Destinations,
        worth: Worth | None,
        limit: int | None,
    ) -> None:
        self._cluster = cluster
        self._evict = evict
        self._selection = selection
        self._destinations = destinations
        self._worth = worth
        self.pods_known = worth is not None
        self._limit = 1 if limit is None and not self.pods_known else limit
        self._evicted: Counter[str] = Counter()

    def is_spent(self, source: NodeUtilization) -> bool:
        """Return whether a node has lost as many pods as it may."""
        return self._evicted[source.node.name] == self._limit

    def groups(self, source: NodeUtilization, purpose: Purpose) -> Iterator[list[Candidate]]:
        """Yield the candidates of a node class by class, each the oldest first."""
        return self._selection.groups(source, None if purpose.filling else purpose.reason(source))

    def move(
        self,
        candidate: Candidate,
        source: NodeUtilization,
        purpose: Purpose,
        expected: Node | None = None,
        likely: Sequence[Node] | None = None,
    ) -> Verdict:
        """Ask for the eviction of a candidate that has a destination, and expect it there if it goes.

        By default it is expected on the likely node where it lands most often; those are looked up unless given.
        """
        pod, reason = candidate.pod, purpose.reason(source)
        recorded = None if purpose.filling else reason
        if refusal := self._evict.pre_eviction_refusal(pod, recorded):
            return refusal
        found = likely or self._destinations.likely(pod, candidate.usage)
        if isinstance(found, Refused):
            return self._stays(pod, recorded, found)
        may_go = self._evict.first_refusal
        destination = self._destinations.placement(pod, found, lambda: may_go([pod]) is None, expected)
        if isinstance(destination, Refused):
            return self._stays(pod, recorded, destination)
        deal = self._deal(candidate, source, destination)
        if unworthy := deal.refusal:
            return self._stays(pod, recorded, unworthy)
        return self._carry_out(candidate, source, purpose, destination, deal)

    def _deal(self, candidate: Candidate, source: NodeUtilization, destination: Destination) -> Deal:
        expected = self._cluster.node(destination.nodes[0])
        if self._worth is None or expected is None:
            return FREE
        return self._worth.deal(candidate, source, self._destinations.on(expected))

    def _stays(self, pod: Pod, recorded: Cause | None, refusal: Refused) -> Refused:
        if recorded is not None:
            self._evict.refuse(pod, recorded, refusal)
        return refusal

    def _carry_out(
        self,
        candidate: Candidate,
        source: NodeUtilization,
        purpose: Purpose,
        destination: Destination,
        deal: Deal,
    ) -> Verdict:
        expected = self._cluster.node(destination.nodes[0])
        assert expected is not None
        excess, reason = source.above(purpose.targets), purpose.reason(source)
        if self.pods_known:
            relieved = excess.total - excess.left(candidate.points)
            reason = with_pod_gone(reason, candidate.points).with_details(relieved=relieved, **deal.figures)
        # The pod is expected there while its eviction is asked for; if it stays, that is taken back.
        with self._cluster.scope() as attempt:
            arrival = self._destinations.expect(candidate.pod, expected, tuple(excess.points))
            verdict = self._evict(candidate.pod, reason.with_details(lands_on=arrival), destination)
            if verdict.leaving:
                self._evicted[source.node.name] += 1
                attempt.keep()
        return verdict


def node_is_spent(verdict: Verdict) -> bool:
    """Return whether no more may leave the node."""
    return isinstance(verdict, Refused) and verdict.cause.code is Code.NODE_LIMIT


class Relief:
    """Takes pods off nodes above their targets."""

    def __init__(self, moves: Moves, targets: Percentages) -> None:
        self._moves = moves
        self._purpose = Purpose(targets)
        self._first_excess: dict[str, float] = {}

    def run(self, sources: Iterable[NodeUtilization]) -> None:
        """Relieve nodes, the one furthest above its targets first."""
        for source in furthest_first(sources, self._purpose.targets):
            for candidate in self._choices(source):
                if self._moves.is_spent(source):
                    break
                if node_is_spent(self._moves.move(candidate, source, self._purpose)):
                    break

    def _choices(self, source: NodeUtilization) -> Iterator[Candidate]:
        excess = source.above(self._purpose.targets)
        if not excess.points:
            return
        # A tenth of it is what a pod must take at least, also in a second run.
        first = self._first_excess.setdefault(source.node.name, excess.beside_pods)
        for group in self._moves.groups(source, self._purpose):
            while best := self._best(group, source.above(self._purpose.targets), first):
                group.remove(best)
                yield best

    def _best(self, group: Sequence[Candidate], excess: Excess, first: float) -> Candidate | None:
        # If the usage of pods is not known, neither is which one helps most: the oldest goes.
        return choose(group, excess, first) if self._moves.pods_known else next(iter(group), None)


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
