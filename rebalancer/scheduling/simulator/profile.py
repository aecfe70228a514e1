"""A profile of the scheduler at work: which plugins refuse nodes, and which score them with which weights."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rebalancer.cluster.measured import LoadsWanted, NodeLoads
from rebalancer.scheduling.simulator.configuration import (
    Configuration,
    ProfileConfig,
    converted,
    enabled,
    unknown_plugins,
)
from rebalancer.scheduling.simulator.plugin import Filter, Score
from rebalancer.scheduling.simulator.plugins.inter_pod_affinity import InterPodAffinity
from rebalancer.scheduling.simulator.plugins.pod_topology_spread import PodTopologySpread
from rebalancer.scheduling.simulator.plugins.resources import (
    NodePorts,
    NodeResourcesBalancedAllocation,
    NodeResourcesFit,
    PodCapacityOfNode,
)
from rebalancer.scheduling.simulator.plugins.traits import (
    ImageLocality,
    NodeAffinity,
    NodeUnschedulable,
    TaintToleration,
)
from rebalancer.scheduling.simulator.plugins.volumes import (
    NodeVolumeLimits,
    VolumeBinding,
    VolumeRestrictions,
    VolumeZone,
)
from rebalancer.scheduling.simulator.state import State
from rebalancer.scheduling.simulator.trimaran import LoadVariationRiskBalancing, TargetLoadPacking, TrimaranArgs

#: The plugins of Kubernetes, and some more, in the order in which the scheduler asks them.
_PLUGINS: Mapping[str, Callable[..., Filter | Score]] = {
    each.name: each
    for each in (
        *(NodeUnschedulable, TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit, VolumeRestrictions),
        *(NodeVolumeLimits, VolumeBinding, VolumeZone, PodTopologySpread, InterPodAffinity),
        *(NodeResourcesBalancedAllocation, ImageLocality, PodCapacityOfNode),
        *(TargetLoadPacking, LoadVariationRiskBalancing),
    )
}

#: What the arguments of a plugin are read as, where it takes any.
ARGUMENTS: Mapping[str, Any] = {name: each.Args for name, each in _PLUGINS.items() if hasattr(each, "Args")}

#: Filters whose answer depends only on the pod's spec and the node.
_STILL = ("NodeUnschedulable", "TaintToleration", "NodeAffinity")

#: Returns the usage of nodes from a source; raises StrategyError where there is none.
AskLoads = Callable[[LoadsWanted], NodeLoads]


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
    # It keeps one target for all profiles: that of the last one that enables it.
    packing = [each for each in wanted.profiles if TargetLoadPacking.name in enabled(each, "score")]
    shared = {TargetLoadPacking.name: _arguments(TargetLoadPacking.name, packing[-1])} if packing else {}

    def plugin(config: ProfileConfig, name: str) -> Filter | Score:
        if name not in ARGUMENTS:
            return _PLUGINS[name](state)
        args = _arguments(name, config)
        if not isinstance(args, TrimaranArgs):
            return _PLUGINS[name](state, args)
        return _PLUGINS[name](state, shared.get(name, args), partial(ask, args.source) if ask else None)

    return {each.scheduler_name: _profile(wanted, each, partial(plugin, each)) for each in wanted.profiles}


def _arguments(name: str, config: ProfileConfig) -> object:
    return converted(name, config.args(name), ARGUMENTS[name])


def _profile(wanted: Configuration, config: ProfileConfig, plugin: Callable[[str], Filter | Score]) -> Profile:
    unknown = ""
    if any(each.filter_verb or each.prioritize_verb for each in wanted.extenders):
        unknown = "an extender of the scheduler has a say"
    if strange := unknown_plugins(config):
        unknown = f"nothing is known of the scheduler's plugin {strange[0]}"
    percentage = config.percentage_of_nodes_to_score
    filters, weights = enabled(config, "filter"), enabled(config, "score")
    made = {name: plugin(name) for name in _PLUGINS if name in filters or name in weights}
    refusing = {name: each for name, each in made.items() if name in filters and isinstance(each, Filter)}
    return Profile(
        still=[each for name, each in refusing.items() if name in _STILL],
        moving=[each for name, each in refusing.items() if name not in _STILL],
        scores=[(each, weights[name]) for name, each in made.items() if name in weights and isinstance(each, Score)],
        percentage=(wanted.percentage_of_nodes_to_score or 0) if percentage is None else percentage,
        unknown=unknown,
    )
