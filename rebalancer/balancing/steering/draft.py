"""A wave as it is being put together."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from rebalancer.balancing.steering.avoidance import Avoidance
from rebalancer.balancing.steering.offers import Offer
from rebalancer.balancing.steering.trial import Expected
from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.simulator.answer import Answer


@dataclass(frozen=True, slots=True)
class Draft:
    """Moves, and the nodes that are avoided while they are made.

    Attributes:
        offers: the moves, in order.
        avoidance: how many taints each node carries.
        receivers: the nodes on which its pods may land as foreseen.
        answers: what the scheduler says of them in the histories that were looked at.
        shares: by pod, how likely it lands on which of them; empty where that is not known.
    """

    offers: tuple[Offer, ...]
    avoidance: Avoidance
    receivers: tuple[str, ...]
    shares: Mapping[Pod, Mapping[str, float]] = field(default_factory=dict)
    answers: tuple[Answer, ...] = ()

    @property
    def destination(self) -> str:
        """Where the first pod is expected."""
        return self.offers[0].destination

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The pods that go, in order."""
        return tuple(offer.candidate.pod for offer in self.offers)

    @property
    def expected(self) -> tuple[Expected, ...]:
        """The pods, each with the node where its replacement is expected."""
        return tuple((offer.candidate.pod, offer.destination) for offer in self.offers)

    def with_offer(
        self, offer: Offer, shares: Mapping[str, float] | None = None, answers: Iterable[Answer] = ()
    ) -> "Draft":
        """Return the same with one more move, with how likely it lands where, and with what was answered."""
        known = self.shares if shares is None else {**self.shares, offer.candidate.pod: shares}
        return Draft((*self.offers, offer), self.avoidance, self.receivers, known, (*self.answers, *answers))

    def with_shares(self, shares: Mapping[Pod, Mapping[str, float]]) -> "Draft":
        """Return the same with other shares of nodes that were known to be likely."""
        known = {pod: {**found, **_without(self.shares.get(pod, {}), found)} for pod, found in shares.items()}
        return replace(self, shares=known)

    def avoiding(self, avoidance: Avoidance) -> "Draft":
        """Return the same without moves, while these nodes are avoided."""
        return Draft((), avoidance, self.receivers)

    def until(self, pod: Pod) -> "Draft":
        """Return the same with only the moves before this pod's."""
        return Draft(self.offers[: self.pods.index(pod)], self.avoidance, self.receivers)


def _without(known: Mapping[str, float], found: Mapping[str, float]) -> dict[str, float]:
    return {name: 0.0 for name in known if name not in found}
