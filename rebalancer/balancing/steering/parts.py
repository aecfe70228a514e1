"""What waves are planned with."""

from dataclasses import dataclass

from rebalancer.balancing.steering.foresight import Foresight
from rebalancer.balancing.steering.fullness import Fullness
from rebalancer.balancing.steering.goal import Goal
from rebalancer.balancing.steering.offers import Offers
from rebalancer.balancing.steering.pool import Pool
from rebalancer.balancing.steering.zones import ZoneSpread
from rebalancer.balancing.utilization import Percentages
from rebalancer.cluster.cluster import Cluster
from rebalancer.eviction.evict import Evict


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a planner; all of them follow the cluster.

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
