"""A profile of the scheduler at work: which plugins refuse nodes, and which score them with which weights."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from rebalancer.scheduling.simulator.configuration import (
    Configuration,
    ProfileConfig,
    enabled,
    unknown_plugins,
)
from rebalancer.scheduling.simulator.plugin import Filter, Score
from rebalancer.scheduling.simulator.plugin_arguments import ARGUMENTS
from rebalancer.scheduling.simulator.plugins.balanced_allocation import NodeResourcesBalancedAllocation
from rebalancer.scheduling.simulator.plugins.image_locality import ImageLocality
from rebalancer.scheduling.simulator.plugins.inter_pod_affinity import InterPodAffinity
from rebalancer.scheduling.simulator.plugins.node_affinity import NodeAffinity
from rebalancer.scheduling.simulator.plugins.node_ports import NodePorts
from rebalancer.scheduling.simulator.plugins.node_resources_fit import NodeResourcesFit
from rebalancer.scheduling.simulator.plugins.pod_capacity_of_node import PodCapacityOfNode
from rebalancer.scheduling.simulator.plugins.pod_topology_spread import PodTopologySpread
from rebalancer.scheduling.simulator.plugins.taint_toleration import NodeUnschedulable, TaintToleration
from rebalancer.scheduling.simulator.plugins.volumes import (
    NodeVolumeLimits,
    VolumeBinding,
    VolumeRestrictions,
    VolumeZone,
)
from rebalancer.scheduling.simulator.state import State
from rebalancer.scheduling.simulator.trimaran import AskLoads, shared_target
from rebalancer.scheduling.simulator.trimaran import makers as trimaran

#: The plugins of Kubernetes, and one more, in the order in which the scheduler asks them.
_PLUGINS: Mapping[str, Callable[..., Filter | Score]] = {
    each.name: each
    for each in (
        *(NodeUnschedulable, TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit, VolumeRestrictions),
        *(NodeVolumeLimits, VolumeBinding, VolumeZone, PodTopologySpread, InterPodAffinity),
        *(NodeResourcesBalancedAllocation, ImageLocality, PodCapacityOfNode),
    )
}

#: Filters whose answer depends only on the pod's spec and the node.
_STILL = ("NodeUnschedulable", "TaintToleration", "NodeAffinity")


@dataclass(frozen=True)
class Profile:
    """A profile at work on one cluster.

    Attributes:
        still: filters whose answer depends only on the pod's spec and the node, in order.
        moving: the other filters, in order.
        scores: plugins that score, with their weights.
        percentage: the share of nodes to score; 0 lets the scheduler choose by the number of nodes.
        unknown: why its decisions are not known; empty as a rule.
    """

    still: Sequence[Filter]
    moving: Sequence[Filter]
    scores: Sequence[tuple[Score, int]]
    percentage: int = 0
    unknown: str = ""


def profiles(
    state: State, configuration: Configuration | None = None, ask: AskLoads | None = None
) -> dict[str, Profile]:
    """Return the profiles by name of the scheduler.

    Args:
        state: the cluster.
        configuration: None for the default profile alone.
        ask: returns the real usage that a plugin scores by; None where nobody measures.

    Raises:
        ConfigurationError: a plugin's arguments cannot be read.
    """
    wanted = configuration or Configuration()
    extended = any(each.filter_verb or each.prioritize_verb for each in wanted.extenders)
    unknown = "an extender of the scheduler has a say" if extended else ""
    target, percentage = shared_target(wanted), wanted.percentage_of_nodes_to_score or 0
    return {
        each.scheduler_name: _profile(
            each, {**_plugins(state, each), **trimaran(state, each, target, ask)}, percentage, unknown
        )
        for each in wanted.profiles
    }


def _profile(
    config: ProfileConfig, makers: Mapping[str, Callable[[], Filter | Score]], percentage: int, unknown: str
) -> Profile:
    strange = unknown_plugins(config)
    filters, weights = enabled(config, "filter"), enabled(config, "score")
    made = {name: make() for name, make in makers.items() if name in filters or name in weights}
    refusing = {name: each for name, each in made.items() if name in filters and isinstance(each, Filter)}
    return Profile(
        still=[each for name, each in refusing.items() if name in _STILL],
        moving=[each for name, each in refusing.items() if name not in _STILL],
        scores=[(each, weights[name]) for name, each in made.items() if name in weights and isinstance(each, Score)],
        percentage=percentage if config.percentage_of_nodes_to_score is None else config.percentage_of_nodes_to_score,
        unknown=f"nothing is known of the scheduler's plugin {strange[0]}" if strange else unknown,
    )


def _plugins(state: State, config: ProfileConfig) -> dict[str, Callable[[], Filter | Score]]:
    """Return what makes each plugin."""

    def made(name: str) -> Filter | Score:
        return _PLUGINS[name](state, *(ARGUMENTS[name](config.args(name)) if name in ARGUMENTS else ()))

    return {name: partial(made, name) for name in _PLUGINS}
