"""Plugin arguments of a KubeSchedulerConfiguration, converted to what the plugins take.

Source: the Kubernetes documentation, kube-scheduler Configuration (v1).
"""

from collections.abc import Callable, Mapping

import msgspec

from rebalancer.cluster.pod import PreferredTerm, SpreadConstraint
from rebalancer.cluster.selectors import NodeSelectorTerm
from rebalancer.scheduling.simulator.configuration import Args, ConfigurationError, converted
from rebalancer.scheduling.simulator.plugins.node_resources_fit import (
    EVEN,
    Scorer,
    least_allocated,
    most_allocated,
    requested_to_capacity_ratio,
)
from rebalancer.scheduling.simulator.trimaran import packing, variation


class _Resource(msgspec.Struct):
    name: str
    weight: int = 1


class _Point(msgspec.Struct):
    utilization: int
    score: int


class _Ratio(msgspec.Struct):
    shape: tuple[_Point, ...] = ()


class _Strategy(msgspec.Struct, rename="camel"):
    type: str = "LeastAllocated"
    resources: tuple[_Resource, ...] = ()
    requested_to_capacity_ratio: _Ratio = msgspec.field(default_factory=_Ratio)


class _Fit(msgspec.Struct, rename="camel"):
    scoring_strategy: _Strategy = msgspec.field(default_factory=_Strategy)
    ignored_resources: frozenset[str] = frozenset()
    ignored_resource_groups: frozenset[str] = frozenset()


def fit(args: Args) -> tuple[Scorer, Mapping[str, int], Callable[[str], bool]]:
    """Return the strategy, the weights, and a function that returns whether a resource is ignored.

    Raises:
        ConfigurationError: the strategy is not known, or has no shape.
    """
    wire = converted("NodeResourcesFit", args, _Fit)
    strategy = wire.scoring_strategy
    weights = {each.name: each.weight or 1 for each in strategy.resources} or EVEN

    def ignored(name: str) -> bool:
        group, slash, _ = name.partition("/")
        return name in wire.ignored_resources or (bool(slash) and group in wire.ignored_resource_groups)

    return _scorer(strategy), weights, ignored


def _scorer(strategy: _Strategy) -> Scorer:
    match strategy.type:
        case "LeastAllocated":
            return least_allocated
        case "MostAllocated":
            return most_allocated
        case "RequestedToCapacityRatio" if strategy.requested_to_capacity_ratio.shape:
            shape = strategy.requested_to_capacity_ratio.shape
            return requested_to_capacity_ratio([(each.utilization, each.score) for each in shape])
        case "RequestedToCapacityRatio":
            raise ConfigurationError("NodeResourcesFit: RequestedToCapacityRatio needs a shape")
    raise ConfigurationError(
        f"NodeResourcesFit: unknown scoring strategy {strategy.type!r}: LeastAllocated, MostAllocated or"
        " RequestedToCapacityRatio"
    )


class _Balance(msgspec.Struct):
    resources: tuple[_Resource, ...] = ()


def balance(args: Args) -> tuple[Mapping[str, int]]:
    """Return the resources that are balanced."""
    wire = converted("NodeResourcesBalancedAllocation", args, _Balance)
    return ({each.name: each.weight or 1 for each in wire.resources} or EVEN,)


class _Pods(msgspec.Struct, rename="camel"):
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


def pods(args: Args) -> tuple[int, bool]:
    """Return the weight of required affinity, and whether preferences of running pods are ignored."""
    wire = converted("InterPodAffinity", args, _Pods)
    return wire.hard_pod_affinity_weight, wire.ignore_preferred_terms_of_existing_pods


class _Constraint(msgspec.Struct, rename="camel"):
    max_skew: int
    topology_key: str
    when_unsatisfiable: str


class _Spread(msgspec.Struct, rename="camel"):
    default_constraints: tuple[_Constraint, ...] = ()
    defaulting_type: str = "System"


def spread(args: Args) -> tuple[tuple[SpreadConstraint, ...] | None]:
    """Return the default constraints of the profile; None for kube-scheduler's own."""
    wire = converted("PodTopologySpread", args, _Spread)
    if wire.defaulting_type != "List":
        return (None,)
    declared = wire.default_constraints
    return (
        tuple(SpreadConstraint(each.max_skew, each.topology_key, each.when_unsatisfiable, None) for each in declared),
    )


class _NodeTerms(msgspec.Struct, rename="camel"):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class _AddedAffinity(msgspec.Struct):
    required: _NodeTerms | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class _NodeAffinity(msgspec.Struct, rename="camel"):
    added_affinity: _AddedAffinity = msgspec.field(default_factory=_AddedAffinity)


def node_affinity(args: Args) -> tuple[tuple[NodeSelectorTerm, ...] | None, tuple[PreferredTerm, ...]]:
    """Return required and preferred terms that the profile adds."""
    added = converted("NodeAffinity", args, _NodeAffinity).added_affinity
    return None if added.required is None else added.required.node_selector_terms, added.preferred


#: By name of each plugin of Kubernetes that is configured, what reads that as the arguments with which it is made.
ARGUMENTS: Mapping[str, Callable[[Args], tuple[object, ...]]] = {
    "NodeResourcesFit": fit,
    "NodeResourcesBalancedAllocation": balance,
    "InterPodAffinity": pods,
    "PodTopologySpread": spread,
    "NodeAffinity": node_affinity,
}

#: The reader of each plugin that takes arguments.
READERS: Mapping[str, Callable[[Args], object]] = {
    **ARGUMENTS,
    "TargetLoadPacking": packing,
    "LoadVariationRiskBalancing": variation,
}
