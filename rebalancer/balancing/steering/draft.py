"""A wave as it is being put together, and what waves are planned with."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from rebalancer.balancing.steering.foresight import Avoid, Foresight
from rebalancer.balancing.steering.fullness import Fullness
from rebalancer.balancing.steering.goal import Goal
from rebalancer.balancing.steering.offers import Offer, Offers
from rebalancer.balancing.steering.pool import Pool
from rebalancer.balancing.steering.zones import ZoneSpread
from rebalancer.balancing.utilization import Percentages
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.eviction.evict import Evict
from rebalancer.scheduling.simulator.answer import Answer


@dataclass(frozen=True, slots=True)
class Draft:
    """Moves, and the nodes that are avoided while they are made.

    Attributes:
        offers: the moves, in order.
        avoid: how many taints each node carries.
        destinations: the nodes on which its pods may land as foreseen.
        answers: what the scheduler says of them in the histories that were looked at.
        shares: by pod, how likely it lands on which of them; empty where that is not known.
    """

    offers: tuple[Offer, ...]
    avoid: Avoid
    destinations: tuple[str, ...]
    shares: Mapping[Pod, Mapping[str, float]] = field(default_factory=dict)
    answers: tuple[Answer, ...] = ()

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The pods that go, in order."""
        return tuple(offer.candidate.pod for offer in self.offers)

    @property
    def expected(self) -> dict[Pod, str]:
        """By pod, in order, the node where its replacement is expected."""
        return {offer.candidate.pod: offer.destination for offer in self.offers}

    def with_offer(
        self, offer: Offer, shares: Mapping[str, float] | None = None, answers: Iterable[Answer] = ()
    ) -> "Draft":
        """Return the same with one more move, with how likely it lands where, and with what was answered."""
        known = self.shares if shares is None else {**self.shares, offer.candidate.pod: shares}
        return Draft((*self.offers, offer), self.avoid, self.destinations, known, (*self.answers, *answers))

    def with_shares(self, shares: Mapping[Pod, Mapping[str, float]]) -> "Draft":
        """Return the same with other shares of nodes that were known to be likely."""
        likely = {pod: dict.fromkeys((*found, *self.shares.get(pod, ())), 0.0) for pod, found in shares.items()}
        return replace(self, shares={pod: {**likely[pod], **found} for pod, found in shares.items()})

    def avoiding(self, avoid: Avoid) -> "Draft":
        """Return the same without moves, while these nodes are avoided."""
        return Draft((), avoid, self.destinations)

    def until(self, pod: Pod) -> "Draft":
        """Return the same with only the moves before this pod's."""
        return Draft(self.offers[: self.pods.index(pod)], self.avoid, self.destinations)


@dataclass(frozen=True, slots=True)
class Planning:
    """What waves are planned with; all of it follows the cluster.

    Attributes:
        cluster: the cluster.
        evict: says which pods would be refused.
        goal: what is aimed at.
        fullness: the nodes as they are.
        pool: the pods that may go.
        offers: what they would bring.
        foresight: where they would land.
        ceilings: how full destinations may become.
        zones: how owners' pods are spread, which must not get worse.
    """

    cluster: Cluster
    evict: Evict
    goal: Goal
    fullness: Fullness
    pool: Pool
    offers: Offers
    foresight: Foresight
    ceilings: Percentages
    zones: ZoneSpread
