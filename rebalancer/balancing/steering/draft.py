"""A wave as it is being put together."""

from dataclasses import dataclass

from rebalancer.balancing.steering.avoidance import Avoidance
from rebalancer.balancing.steering.offers import Offer
from rebalancer.balancing.steering.trial import Expected
from rebalancer.cluster.pod import Pod


@dataclass(frozen=True, slots=True)
class Draft:
    """Moves, and the nodes that are avoided while they are made.

    Attributes:
        offers: the moves, in order.
        avoidance: how many taints each node carries.
        receivers: the nodes on which its pods may land as foreseen.
    """

    offers: tuple[Offer, ...]
    avoidance: Avoidance
    receivers: tuple[str, ...]

    @property
    def destination(self) -> str:
        """Where the first pod is expected; in a wave to one node, where all are."""
        return self.offers[0].destination

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The pods that go, in order."""
        return tuple(offer.candidate.pod for offer in self.offers)

    @property
    def expected(self) -> tuple[Expected, ...]:
        """The pods, each with the node where its replacement is expected."""
        return tuple((offer.candidate.pod, offer.destination) for offer in self.offers)

    def with_offer(self, offer: Offer) -> "Draft":
        """Return the same with one more move."""
        return Draft((*self.offers, offer), self.avoidance, self.receivers)

    def until(self, pod: Pod) -> "Draft":
        """Return the same with only the moves before this pod's."""
        return Draft(self.offers[: self.pods.index(pod)], self.avoidance, self.receivers)
