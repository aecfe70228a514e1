"""The built-in strategies, a page each; they import `rebalancer.api` and nothing else of the framework."""

from .high_node_utilization import HighNodeUtilization
from .low_node_utilization import LowNodeUtilization
from .pod_life_time import PodLifeTime
from .remove_duplicates import RemoveDuplicates
from .remove_failed_pods import RemoveFailedPods
from .remove_pods_having_too_many_restarts import RemovePodsHavingTooManyRestarts
from .remove_pods_violating_inter_pod_anti_affinity import RemovePodsViolatingInterPodAntiAffinity
from .remove_pods_violating_node_affinity import RemovePodsViolatingNodeAffinity
from .remove_pods_violating_node_taints import RemovePodsViolatingNodeTaints
from .remove_pods_violating_topology_spread_constraint import RemovePodsViolatingTopologySpreadConstraint

#: All of them, in the order in which `rebalancer strategies` lists them.
BUILTIN = (
    HighNodeUtilization,
    LowNodeUtilization,
    PodLifeTime,
    RemoveDuplicates,
    RemoveFailedPods,
    RemovePodsHavingTooManyRestarts,
    RemovePodsViolatingInterPodAntiAffinity,
    RemovePodsViolatingNodeAffinity,
    RemovePodsViolatingNodeTaints,
    RemovePodsViolatingTopologySpreadConstraint,
)
