"""A planner's parts for a test, put together as for a policy."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from rebalancer.balancing.candidates import Selection
from rebalancer.balancing.steering.offers import Planning
from rebalancer.balancing.usage import MeasuredUsage
from rebalancer.balancing.utilization import Bounds
from rebalancer.cluster.cluster import Cluster
from rebalancer.engine.evictor import Evictor
from rebalancer.engine.gate import Gate
from rebalancer.engine.ledger import Ledger
from rebalancer.engine.limits import Limits
from rebalancer.eviction.steering import Steer
from rebalancer.policy.evictor import DefaultEvictorArgs
from tests.measured import KEYS


def planner(
    on: Cluster,
    low: Mapping[str, float],
    high: Mapping[str, float],
    *,
    deviation: bool = False,
    min_gain: float = 1.5,
    evictor: Mapping[str, Any] | None = None,
    limits: Limits = Limits(),  # noqa: B008  immutable
) -> Planning:
    """Return what waves on a cluster are planned with; `evictor` as a policy spells it."""
    gate = Gate(on, limits, None, Ledger())
    evict = gate.asked_by(Evictor(on, DefaultEvictorArgs.model_validate(evictor or {})), "test", "test")
    evict = evict.with_owner_limit()
    usage = MeasuredUsage(on, on.measure(None), low)
    band = Bounds(low, high, deviation).of(usage.nodes())
    selection = Selection(on, evict, usage, lambda _: True, timedelta(0))
    return Planning(selection, band, Steer(min_gain, KEYS), [each.name for each in on.nodes], None)
