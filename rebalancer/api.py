"""The public face: all that a strategy may import.

A strategy is one module.  Its docstring is its manual, its `Args` are its arguments, and `run` walks the cluster and
asks for evictions:

    class OldPods(Deschedule[OldPodsArgs]):
        name = "OldPods"
        Args = OldPodsArgs

        def run(self, cluster: Cluster, evict: Evict) -> None:
            for pod in cluster.pods():
                if is_old(pod) and evict.evictable(pod, because="too old"):
                    evict(pod, because="too old")

A strategy holds no client, no clock, no limit and no log: the engine grants or refuses, counts and records.
"""

from pydantic import Field, field_validator, model_validator

from rebalancer.args.arguments import (
    Args,
    Count,
    IncludeOrExclude,
    Int,
    Names,
    Namespaces,
    Part,
    Percent,
    Selector,
    Thresholds,
)
from rebalancer.args.pods import PodArgs
from rebalancer.args.usage import MetricsUtilization
from rebalancer.args.utilization import UtilizationArgs
from rebalancer.balancing.emptying import Emptying
from rebalancer.balancing.figures import Figures
from rebalancer.balancing.filling import FIRST_CEILING, LAST_CEILING, Band, Filling
from rebalancer.balancing.level import Level
from rebalancer.balancing.relief import Relief
from rebalancer.balancing.relocation import Relocation
from rebalancer.balancing.reservations import Reservations
from rebalancer.balancing.sources import figures_by, forecast_by, usage_by
from rebalancer.balancing.usage import (
    NodeLoad,
    Percentages,
    Room,
    Usage,
    around_mean,
    means,
    measured,
    node_loads,
    requested,
)
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.label_index import LabelIndex
from rebalancer.cluster.measured import Measured
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Condition, ContainerStatus, Owner, Pod
from rebalancer.cluster.resources import METRIC_RESOURCE
from rebalancer.cluster.selectors import LabelSelector, Requirement
from rebalancer.cluster.states import POD_STATES
from rebalancer.cluster.taints import PREFER_NO_SCHEDULE, Taint, hard, untolerated
from rebalancer.errors import StrategyError
from rebalancer.eviction.evict import Evict
from rebalancer.eviction.order import cheapest_first
from rebalancer.eviction.verdict import Refused, Verdict
from rebalancer.scheduling.forecast import Forecast
from rebalancer.scheduling.homes import Homes
from rebalancer.scheduling.node_affinity import Preferences, preferred_weight, unmet
from rebalancer.scheduling.peers import Peers
from rebalancer.scheduling.spread import Domain, Spread, Topology, below_average, moves, spreads
from rebalancer.scheduling.takers import Takers
from rebalancer.strategy import Balance, Deschedule, Strategy

__all__ = [
    "FIRST_CEILING",
    "LAST_CEILING",
    "METRIC_RESOURCE",
    "POD_STATES",
    "PREFER_NO_SCHEDULE",
    "Args",
    "Balance",
    "Band",
    "Cluster",
    "Condition",
    "ContainerStatus",
    "Count",
    "Deschedule",
    "Domain",
    "Emptying",
    "Evict",
    "Field",
    "Figures",
    "Filling",
    "Forecast",
    "Homes",
    "IncludeOrExclude",
    "Int",
    "LabelIndex",
    "LabelSelector",
    "Level",
    "Measured",
    "MetricsUtilization",
    "Names",
    "Namespaces",
    "Node",
    "NodeLoad",
    "Owner",
    "Part",
    "Peers",
    "Percent",
    "Percentages",
    "Pod",
    "PodArgs",
    "Preferences",
    "Refused",
    "Relief",
    "Relocation",
    "Requirement",
    "Reservations",
    "Room",
    "Selector",
    "Spread",
    "Strategy",
    "StrategyError",
    "Taint",
    "Takers",
    "Thresholds",
    "Topology",
    "Usage",
    "UtilizationArgs",
    "Verdict",
    "around_mean",
    "below_average",
    "cheapest_first",
    "field_validator",
    "figures_by",
    "forecast_by",
    "hard",
    "means",
    "measured",
    "model_validator",
    "moves",
    "node_loads",
    "preferred_weight",
    "requested",
    "spreads",
    "unmet",
    "untolerated",
    "usage_by",
]
