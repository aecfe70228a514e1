"""Worth: what a move is expected to gain against what it costs, both in point hours (see `rebalancer.memory.worth`)."""

from dataclasses import dataclass

from rebalancer.balancing.candidates import Candidate
from rebalancer.balancing.utilization import NodeUtilization, Percentages
from rebalancer.cluster.pod import Pod
from rebalancer.eviction.causes import Code
from rebalancer.eviction.evict import Outlook
from rebalancer.eviction.verdict import Refused, refused

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

    def deal(self, candidate: Candidate, source: NodeUtilization, receiver: NodeUtilization) -> Deal:
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
        if short := receiver.short_of(self._low, {}):
            filled = short - receiver.short_of(self._low, receiver.points(candidate.usage))
            gain += _BELOW * filled * self._lasts(outlook, receiver)
        return Deal(gain, price)

    def _lasts(self, outlook: Outlook, node: NodeUtilization) -> float:
        name = node.node.name
        if name not in self._hours:
            self._hours[name] = outlook.hours(node.node, node.bounds(self._low), node.bounds(self._high))
        return self._hours[name]
