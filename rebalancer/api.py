"""The public face: all that a strategy may import.

A strategy is one module.  Its docstring is its manual, its `Args` are its arguments, and `run` walks the cluster and
asks for evictions:

    class OldPods(Deschedule[OldPodsArgs]):
        name = "OldPods"
        Args = OldPodsArgs

        def run(self, cluster: Cluster, evict: Evict) -> None:
            old = [pod for pod in cluster.pods() if is_old(pod)]
            evict.each([(pod, "too old") for pod in old if evict.evictable(pod, "too old")])

A strategy holds no client, no clock, no limit and no log: the engine grants or refuses, counts and records.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pydantic import Field, field_validator, model_validator

from rebalancer.balancing.relocation import Relocation
from rebalancer.balancing.usage import usage_for
from rebalancer.balancing.utilization import Bounds
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Condition, ContainerStatus, Pod
from rebalancer.cluster.taints import Taint, untolerated
from rebalancer.engine.strategy import Balance, Deschedule
from rebalancer.errors import StrategyError
from rebalancer.eviction.causes import Cause, Code
from rebalancer.eviction.evict import Evict, cheapest_first
from rebalancer.eviction.verdict import Refused
from rebalancer.policy.arguments import Args, Count, IncludeOrExclude, Int, Names, Namespaces, Part, PodArgs, Thresholds
from rebalancer.policy.usage import UtilizationArgs
from rebalancer.scheduling.anti_affinity import AntiAffinityIndex
from rebalancer.scheduling.eligibility import EligibleNodes, OtherNodes
from rebalancer.scheduling.fit import Preferences, unmet
from rebalancer.scheduling.spread import Domains, Topology

if TYPE_CHECKING:
    from rebalancer.balancing.by_usage import ByUsage

__all__ = [
    "AntiAffinityIndex",
    "Args",
    "Balance",
    "Bounds",
    "Cause",
    "Cluster",
    "Code",
    "Condition",
    "ContainerStatus",
    "Count",
    "Deschedule",
    "Domains",
    "EligibleNodes",
    "Evict",
    "Field",
    "IncludeOrExclude",
    "Int",
    "Names",
    "Namespaces",
    "Node",
    "OtherNodes",
    "Part",
    "Pod",
    "PodArgs",
    "Preferences",
    "Refused",
    "Relocation",
    "StrategyError",
    "Taint",
    "Thresholds",
    "Topology",
    "UtilizationArgs",
    "cheapest_first",
    "field_validator",
    "model_validator",
    "moves_by_usage",
    "unmet",
    "untolerated",
    "usage_for",
]


def moves_by_usage(args: UtilizationArgs, cluster: Cluster, evict: Evict, wanted: Callable[[Pod], bool]) -> "ByUsage":
    """Return what moves pods by usage; a kube-scheduler is imported with it, which most runs do without.

    The arguments, and the errors raised, are those of `ByUsage`.
    """
    from rebalancer.balancing.by_usage import ByUsage  # noqa: PLC0415

    return ByUsage(args, cluster, evict, wanted)
