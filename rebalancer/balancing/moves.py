"""Single moves of relief and filling: ask for the eviction of a pod that has a destination, and expect it there.

A move has to be worth what it costs: both are told in point hours (see `rebalancer.engine.patience`).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from rebalancer.balancing.candidates import Candidate, Selection
from rebalancer.balancing.cause_details import why_relieved, with_pod_gone
from rebalancer.balancing.destinations import Destinations
from rebalancer.balancing.utilization import NodeUtilization, Percentages
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.eviction.causes import Cause, Code
from rebalancer.eviction.evict import Evict, Outlook
from rebalancer.eviction.steering import Destination
from rebalancer.eviction.verdict import Refused, Verdict, refused

#: A point below a band counts as so much of one above it: a node that is too empty hurts no pod.
_BELOW = 0.05


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


class Worth:
    """Weighs moves between nodes.

    Args:
        outlook: how long nodes will be outside their bounds, and what moves cost; None: they cost nothing.
        low: by resource, below which a node is too empty; empty where only targets count.
        high: above which a node is too full.
        inner: down to where a node is brought that is too full.
    """

    def __init__(self, outlook: Outlook | None, low: Percentages, high: Percentages, inner: Percentages) -> None:
        self._outlook = outlook
        self._low, self._high, self._inner = low, high, inner
        self._hours: dict[str, float] = {}
        self._prices: dict[Pod, float] = {}

    def deal(self, candidate: Candidate, source: NodeUtilization, destination: NodeUtilization) -> Deal:
        """Return what it brings to move a pod now, and what it costs.

        For example, n1 is 8 points over and expected to be so for two hours.  A pod of 5 points gains 10 point hours
        there.  If it lands on n3, which is 3 points below its band since half an hour, that adds 0.05 x 3 x 0.5.
        """
        outlook, pod = self._outlook, candidate.pod
        if outlook is None:
            return FREE
        if pod not in self._prices:
            self._prices[pod] = outlook.price(pod)
        price = self._prices[pod]
        if not price:
            return FREE
        gain = 0.0
        if source.above(self._high).points:
            excess = source.above(self._inner)
            gain = (excess.total - excess.left(candidate.points)) * self._lasts(outlook, source)
        if short := destination.short_of(self._low, {}):
            filled = short - destination.short_of(self._low, destination.points(candidate.usage))
            gain += _BELOW * filled * self._lasts(outlook, destination)
        return Deal(gain, price)

    def _lasts(self, outlook: Outlook, node: NodeUtilization) -> float:
        name = node.node.name
        if name not in self._hours:
            self._hours[name] = outlook.hours(node.node, node.bounds(self._low), node.bounds(self._high))
        return self._hours[name]


@dataclass(frozen=True, slots=True)
class Purpose:
    """Why pods leave a node.

    Attributes:
        targets: by resource, above which percentage a node loses pods.
        filling: whether they go to fill other nodes; then pods that stay are not recorded.
    """

    targets: Percentages
    filling: bool = False

    def reason(self, source: NodeUtilization) -> Cause:
        """Return why pods should leave this node now."""
        return why_relieved(source, self.targets, filling=self.filling)


class Moves:
    """Makes moves, and counts how many pods each node has lost.

    Args:
        cluster: the cluster.
        evict: whom to ask for evictions.
        selection: which pods may be moved.
        destinations: where they may go.
        worth: says which moves gain more than they cost; None if the usage of pods is not known.
        limit: the most evictions from each node.  Without it, if the usage of pods is not known, a node loses one,
            since nobody could tell when it has lost enough.
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

        Args:
            candidate: the pod that would go.
            source: its node.
            purpose: why.
            expected: which of its likely nodes to expect it on; by default the one where it lands most often.
            likely: those nodes; looked up here unless given.

        Raises:
            CycleOver: see `Evict`.
        """
        pod, reason = candidate.pod, purpose.reason(source)
        recorded = None if purpose.filling else reason
        if refusal := self._evict.pre_eviction_refusal(pod, recorded):
            return refusal
        found = likely or self._destinations.likely(pod, candidate.usage)
        if isinstance(found, Refused):
            return self._stays(pod, recorded, found)
        goes = partial(self._may_go, pod)
        destination = self._destinations.placement(pod, found, goes, expected)
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

    def _may_go(self, pod: Pod) -> bool:
        return self._evict.first_refusal([pod]) is None

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
