"""A profile of the scheduler at work: which plugins refuse nodes, and which score them with which weights."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rebalancer.cluster.measured import LoadsWanted, NodeLoads
from rebalancer.scheduling.simulator import configuration as settings
from rebalancer.scheduling.simulator.configuration import Configuration, ProfileConfig, enabled
from rebalancer.scheduling.simulator.plugin import Filter, Score
from rebalancer.scheduling.simulator.plugins import inter_pod_affinity, pod_topology_spread, resources, traits, volumes
from rebalancer.scheduling.simulator.state import State
from rebalancer.scheduling.simulator.trimaran import LoadVariationRiskBalancing, TargetLoadPacking, TrimaranArgs

#: The plugins of Kubernetes, and some more, in the order in which the scheduler asks them.
_PLUGINS: Mapping[str, Callable[..., Filter | Score]] = {
    each.name: each
    for each in (
        *(traits.NodeUnschedulable, traits.TaintToleration, traits.NodeAffinity),
        *(resources.NodePorts, resources.NodeResourcesFit, volumes.VolumeRestrictions, volumes.NodeVolumeLimits),
        *(volumes.VolumeBinding, volumes.VolumeZone, pod_topology_spread.PodTopologySpread),
        *(inter_pod_affinity.InterPodAffinity, resources.NodeResourcesBalancedAllocation, traits.ImageLocality),
        *(resources.PodCapacityOfNode, TargetLoadPacking, LoadVariationRiskBalancing),
    )
}

#: What the arguments of a plugin are read as, where it takes any.
ARGUMENTS: Mapping[str, Any] = {name: each.Args for name, each in _PLUGINS.items() if hasattr(each, "Args")}

#: Filters whose answer depends only on the pod's spec and the node.
_STILL = ("NodeUnschedulable", "TaintToleration", "NodeAffinity")

#: Returns the usage of nodes from a source; raises StrategyError where there is none.  None where nobody measures.
AskLoads = Callable[[LoadsWanted], NodeLoads]


@dataclass(frozen=True)
class Profile:
    """A profile at work on one cluster."""

    still: Sequence[Filter]  # filters whose answer depends only on the pod's spec and the node, in order
    moving: Sequence[Filter]  # the other filters, in order
    scores: Sequence[tuple[Score, int]]  # plugins that score, with their weights
    percentage: int = 0  # the share of nodes to score; 0 lets the scheduler choose by the number of nodes
    unknown: str = ""  # why its decisions are not known; empty as a rule


def profiles(
    state: State, configuration: Configuration | None = None, ask: AskLoads | None = None
) -> dict[str, Profile]:
    """Return the profiles by name of the scheduler: without a configuration the default one alone."""
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
    return settings.converted(name, config.args(name), ARGUMENTS[name])


def _profile(wanted: Configuration, config: ProfileConfig, plugin: Callable[[str], Filter | Score]) -> Profile:
    unknown = ""
    if any(each.filter_verb or each.prioritize_verb for each in wanted.extenders):
        unknown = "an extender of the scheduler has a say"
    if strange := settings.unknown_plugins(config):
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
