"""The built-in strategies, a page each; they import `rebalancer.api` and nothing else of the framework."""

from .high_node_utilization import HighNodeUtilization
from .low_node_utilization import LowNodeUtilization
from .pod_life_time import PodLifeTime
from .remove_duplicates import RemoveDuplicates
from .remove_failed_pods import RemoveFailedPods
from .remove_pods_having_too_many_restarts import RemovePodsHavingTooManyRestarts
from .remove_pods_violating_node_taints import RemovePodsViolatingNodeTaints

#: All of them, in the order in which `rebalancer strategies` lists them.
BUILTIN = (
    HighNodeUtilization,
    LowNodeUtilization,
    PodLifeTime,
    RemoveDuplicates,
    RemoveFailedPods,
    RemovePodsHavingTooManyRestarts,
    RemovePodsViolatingNodeTaints,
)
