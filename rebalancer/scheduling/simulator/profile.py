"""A profile of the scheduler: which plugins refuse nodes, and which score them with which weights."""

from collections.abc import Sequence
from dataclasses import dataclass

from rebalancer.scheduling.simulator.plugin import Filter, Score
from rebalancer.scheduling.simulator.plugins.balanced_allocation import NodeResourcesBalancedAllocation
from rebalancer.scheduling.simulator.plugins.image_locality import ImageLocality
from rebalancer.scheduling.simulator.plugins.inter_pod_affinity import InterPodAffinity
from rebalancer.scheduling.simulator.plugins.node_affinity import NodeAffinity
from rebalancer.scheduling.simulator.plugins.node_ports import NodePorts
from rebalancer.scheduling.simulator.plugins.node_resources_fit import NodeResourcesFit
from rebalancer.scheduling.simulator.plugins.node_unschedulable import NodeUnschedulable
from rebalancer.scheduling.simulator.plugins.node_volume_limits import NodeVolumeLimits
from rebalancer.scheduling.simulator.plugins.pod_topology_spread import PodTopologySpread
from rebalancer.scheduling.simulator.plugins.taint_toleration import TaintToleration
from rebalancer.scheduling.simulator.plugins.volume_binding import VolumeBinding
from rebalancer.scheduling.simulator.plugins.volume_restrictions import VolumeRestrictions
from rebalancer.scheduling.simulator.plugins.volume_zone import VolumeZone
from rebalancer.scheduling.simulator.state import State

NEWEST_MINOR = 36


@dataclass(frozen=True)
class Profile:
    """A profile at work on one cluster.

    Attributes:
        still: filters whose answer goes by the pod's spec and the node alone, in order.
        moving: the other filters, in order.
        scores: plugins that score, with their weights.
        percentage: of nodes to score; 0 lets the scheduler choose by the number of nodes.
    """

    still: Sequence[Filter]
    moving: Sequence[Filter]
    scores: Sequence[tuple[Score, int]]
    percentage: int = 0


def default_profile(state: State, minor: int = NEWEST_MINOR) -> Profile:
    """Return kube-scheduler's default profile in a version 1.`minor`."""
    taints, affinity = TaintToleration(state, minor), NodeAffinity(state)
    fit, spread, pods = NodeResourcesFit(state), PodTopologySpread(state), InterPodAffinity(state)
    return Profile(
        still=(NodeUnschedulable(state), taints, affinity),
        moving=(
            NodePorts(state),
            fit,
            VolumeRestrictions(state),
            NodeVolumeLimits(state),
            VolumeBinding(state),
            VolumeZone(state),
            spread,
            pods,
        ),
        scores=(
            (taints, 3),
            (affinity, 2),
            (fit, 1),
            (spread, 2),
            (pods, 2),
            (NodeResourcesBalancedAllocation(state, minor), 1),
            (ImageLocality(state), 1),
        ),
    )
