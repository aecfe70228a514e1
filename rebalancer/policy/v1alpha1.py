"""The older wire form `descheduler/v1alpha1`, and its conversion (framework.md 3).

The result is a v1alpha2 document in which each value keeps the place where its author wrote it.  Two things differ from
the descheduler's conversion: strategies keep the order of the document (in the descheduler it is random), and
`includedTaints` is carried over (in the descheduler it is lost).
"""

from collections.abc import Iterator, Mapping
from itertools import chain

from pydantic import Field

from rebalancer.policy.arguments import Int, Part, Plugin
from rebalancer.policy.document import DocumentNode, at
from rebalancer.policy.findings import Findings, did_you_mean
from rebalancer.policy.v1alpha2 import API_VERSION as NEW_API_VERSION
from rebalancer.policy.v1alpha2 import EVICTOR, KIND
from rebalancer.policy.validation import read_leniently


class UtilizationThresholds(Part):
    """Parameters of LowNodeUtilization and HighNodeUtilization.

    Values of type `object` are carried over unchanged; they are checked later, as arguments.
    """

    use_deviation_thresholds: object = None
    thresholds: object = None
    target_thresholds: object = None
    number_of_nodes: object = None


class OldRestarts(Part):
    """Parameters of RemovePodsHavingTooManyRestarts."""

    pod_restart_threshold: object = None
    including_init_containers: object = None


class LifeTime(Part):
    """Parameters of PodLifeTime."""

    max_pod_life_time_seconds: object = None
    states: object = None
    pod_status_phases: object = None


class Duplicates(Part):
    """Parameters of RemoveDuplicates."""

    exclude_owner_kinds: object = None


class FailedPods(Part):
    """Parameters of RemoveFailedPods."""

    exclude_owner_kinds: object = None
    min_pod_lifetime_seconds: object = None
    reasons: object = None
    including_init_containers: object = None


class StrategyParams(Part):
    """The parameters of all strategies together; each strategy uses some of them."""

    node_resource_utilization_thresholds: UtilizationThresholds | None = None
    node_affinity_type: object = None
    pods_having_too_many_restarts: OldRestarts | None = None
    pod_life_time: LifeTime | None = None
    remove_duplicates: Duplicates | None = None
    failed_pods: FailedPods | None = None
    include_soft_constraints: bool = False
    namespaces: object = None
    threshold_priority: Int | None = None
    threshold_priority_class_name: str = ""
    label_selector: object = None
    node_fit: bool = False
    include_prefer_no_schedule: object = None
    excluded_taints: object = None
    included_taints: object = None


class OldStrategy(Part):
    """One strategy."""

    enabled: bool = False
    weight: Int = 0
    params: StrategyParams = StrategyParams()


class OldPolicy(Part):
    """A policy of the older form."""

    api_version: object = None
    kind: object = None
    strategies: dict[str, OldStrategy | None] = Field(default_factory=dict)
    node_selector: object = None
    max_no_of_pods_to_evict_per_node: object = None
    max_no_of_pods_to_evict_per_namespace: object = None
    evict_failed_bare_pods: bool = False
    evict_local_storage_pods: bool = False
    evict_system_critical_pods: bool = False
    evict_daemon_set_pods: bool = False
    ignore_pvc_pods: bool = False


API_VERSION = "descheduler/v1alpha1"

_LIMITS = ("nodeSelector", "maxNoOfPodsToEvictPerNode", "maxNoOfPodsToEvictPerNamespace")
_SWITCHES = (
    "evictLocalStoragePods",
    "evictDaemonSetPods",
    "evictSystemCriticalPods",
    "evictFailedBarePods",
    "ignorePvcPods",
)
_PODS = {"namespaces": ("namespaces",), "labelSelector": ("labelSelector",)}
_THRESHOLDS = "nodeResourceUtilizationThresholds"
#: For each strategy its arguments, and where in `params` each one comes from; lists from two places are joined.
_ARGUMENTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "RemovePodsViolatingNodeTaints": _PODS
    | {name: (name,) for name in ("includePreferNoSchedule", "excludedTaints", "includedTaints")},
    "RemoveFailedPods": _PODS
    | {
        name: (f"failedPods.{name}",)
        for name in ("reasons", "excludeOwnerKinds", "minPodLifetimeSeconds", "includingInitContainers")
    },
    "RemovePodsViolatingNodeAffinity": _PODS | {"nodeAffinityType": ("nodeAffinityType",)},
    "RemovePodsViolatingInterPodAntiAffinity": _PODS,
    "RemovePodsHavingTooManyRestarts": _PODS
    | {name: (f"podsHavingTooManyRestarts.{name}",) for name in ("podRestartThreshold", "includingInitContainers")},
    "PodLifeTime": _PODS
    | {
        "maxPodLifeTimeSeconds": ("podLifeTime.maxPodLifeTimeSeconds",),
        "states": ("podLifeTime.podStatusPhases", "podLifeTime.states"),
    },
    "RemoveDuplicates": {
        "namespaces": ("namespaces",),
        "excludeOwnerKinds": ("removeDuplicates.excludeOwnerKinds",),
    },
    "RemovePodsViolatingTopologySpreadConstraint": _PODS,
    "HighNodeUtilization": {"evictableNamespaces": ("namespaces",)}
    | {name: (f"{_THRESHOLDS}.{name}",) for name in ("thresholds", "numberOfNodes")},
    "LowNodeUtilization": {"evictableNamespaces": ("namespaces",)}
    | {
        name: (f"{_THRESHOLDS}.{name}",)
        for name in ("thresholds", "targetThresholds", "useDeviationThresholds", "numberOfNodes")
    },
}
_SPREAD = "RemovePodsViolatingTopologySpreadConstraint"
_WITHOUT_NODE_FIT = "PodLifeTime"


def converted(document: DocumentNode, plugins: Mapping[str, Plugin], findings: Findings) -> DocumentNode:
    """Return the document as v1alpha2, with each enabled strategy in a profile of its own."""
    place = document.place
    version = document.at("apiVersion")
    findings.notice(
        version.place if version else place,
        f"{API_VERSION} is deprecated; it is read as {NEW_API_VERSION}, each strategy in a profile of its own",
    )
    old = read_leniently(OldPolicy, document, findings) or OldPolicy()
    profiles = tuple(
        _profile(name, document, old.strategies[name] or OldStrategy(), plugins, findings)
        for name in _convertible(document, old, plugins, findings)
    )
    new = {
        "apiVersion": DocumentNode(NEW_API_VERSION, place),
        "kind": DocumentNode(KIND, place),
        "profiles": DocumentNode(profiles, place),
    }
    return DocumentNode(new | {key: node for key in _LIMITS if (node := document.at(key))}, place)


def _convertible(
    document: DocumentNode, old: OldPolicy, plugins: Mapping[str, Plugin], findings: Findings
) -> Iterator[str]:
    """Yield the enabled strategies; one that does not exist is an error even where it is disabled."""
    strategies = document.at("strategies") or DocumentNode({}, document.place)
    for name, node in strategies.entries().items():
        strategy = old.strategies.get(name)
        enabled = strategy is not None and strategy.enabled
        if name in _ARGUMENTS and name in plugins:
            if enabled:
                yield name
        elif name != EVICTOR or enabled:
            hint = did_you_mean(name, (each for each in _ARGUMENTS if each in plugins))
            findings.error(node.place, f"no strategy of {API_VERSION} is called {name!r}{hint}")


def _profile(
    name: str, document: DocumentNode, old: OldStrategy, plugins: Mapping[str, Plugin], findings: Findings
) -> DocumentNode:
    strategy = document.at("strategies", name) or DocumentNode({}, document.place)
    params = strategy.at("params") or DocumentNode({}, strategy.place)
    place = params.place
    _note_unused(name, strategy, params, findings)
    evictor = _evictor(name, document, old, params, findings)
    configured = (
        _entry(EVICTOR, DocumentNode(evictor, place)),
        _entry(name, DocumentNode(_arguments(name, old, params), place)),
    )
    point = "balance" if "balance" in plugins[name].points else "deschedule"
    enabled = DocumentNode({"enabled": DocumentNode((DocumentNode(name, place),), place)}, place)
    profile: dict[str, DocumentNode] = {
        "name": DocumentNode(f"strategy-{name}-profile", place),
        "pluginConfig": DocumentNode(configured, place),
        "plugins": DocumentNode({point: enabled}, place),
    }
    return DocumentNode(profile, strategy.place)


def _entry(name: str, args: DocumentNode) -> DocumentNode:
    return DocumentNode({"name": DocumentNode(name, args.place), "args": args}, args.place)


def _evictor(
    name: str, document: DocumentNode, old: OldStrategy, params: DocumentNode, findings: Findings
) -> dict[str, DocumentNode]:
    """Return DefaultEvictor's arguments for a strategy's profile."""
    args = {key: node for key in _SWITCHES if (node := document.at(key))}
    if old.params.node_fit and name != _WITHOUT_NODE_FIT:
        args["nodeFit"] = DocumentNode(True, at(params, "nodeFit").place)
    class_name = old.params.threshold_priority_class_name
    if old.params.threshold_priority is not None:
        place = at(params, "thresholdPriority").place
        args["priorityThreshold"] = DocumentNode({"value": DocumentNode(old.params.threshold_priority, place)}, place)
        if class_name:
            findings.error(place, f"{name}: give either thresholdPriority or thresholdPriorityClassName, not both")
    elif class_name:
        place = at(params, "thresholdPriorityClassName").place
        args["priorityThreshold"] = DocumentNode({"name": DocumentNode(class_name, place)}, place)
    return args


def _arguments(name: str, old: OldStrategy, params: DocumentNode) -> dict[str, DocumentNode]:
    """Return the strategy's own arguments."""
    args = {}
    for argument, sources in _ARGUMENTS[name].items():
        found = [node for source in sources if (node := params.at(*source.split(".")))]
        if found:
            args[argument] = _joined(found)
    if name == _SPREAD:
        place = at(params, "includeSoftConstraints").place
        wanted = ("DoNotSchedule", *(["ScheduleAnyway"] if old.params.include_soft_constraints else []))
        args["constraints"] = DocumentNode(tuple(DocumentNode(each, place) for each in wanted), place)
        args["topologyBalanceNodeFit"] = DocumentNode(True, place)
    return args


def _joined(nodes: list[DocumentNode]) -> DocumentNode:
    """Return several lists as one; a value that is not a list is returned alone, and refused later as an argument."""
    wrong = [node for node in nodes if not isinstance(node.value, tuple)]
    if wrong or len(nodes) == 1:
        return (wrong or nodes)[0]
    return DocumentNode(tuple(chain.from_iterable(node.items() for node in nodes)), nodes[0].place)


def _note_unused(name: str, strategy: DocumentNode, params: DocumentNode, findings: Findings) -> None:
    """Note parameters that the strategy does not use."""
    weight = strategy.at("weight")
    if weight:
        findings.ignored(weight.place, "weight has no effect, and never had")
    used = {source.split(".")[0] for sources in _ARGUMENTS[name].values() for source in sources}
    used |= {"thresholdPriority", "thresholdPriorityClassName"}
    used |= {"includeSoftConstraints"} if name == _SPREAD else set()
    used |= {"nodeFit"} if name != _WITHOUT_NODE_FIT else set()
    known = {field.alias for field in StrategyParams.model_fields.values()}
    for key, node in params.entries().items():
        if key in known - used and node.value not in (None, False):
            findings.ignored(node.place, f"{name} does not use {key}: it has no effect")
