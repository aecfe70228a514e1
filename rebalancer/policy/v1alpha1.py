"""The older wire form `descheduler/v1alpha1`, and its conversion (framework.md 3).

The result is a v1alpha2 document in which each value keeps the place where its author wrote it.  Two things differ from
the descheduler's conversion: strategies keep the order of the document (in the descheduler it is random), and
`includedTaints` is carried over (in the descheduler it is lost).
"""

from collections.abc import Mapping
from itertools import chain, groupby
from operator import itemgetter
from types import GenericAlias
from typing import Any

from pydantic import Field

from rebalancer.policy.arguments import Int, Plugin, part
from rebalancer.policy.document import DocumentNode, at, node_of
from rebalancer.policy.findings import Findings, did_you_mean
from rebalancer.policy.v1alpha2 import API_VERSION as NEW_API_VERSION
from rebalancer.policy.v1alpha2 import EVICTOR, KIND
from rebalancer.policy.validation import read

API_VERSION = "descheduler/v1alpha1"


def _from(group: str, *names: str) -> dict[str, tuple[str, ...]]:
    return {name: (f"{group}.{name}",) for name in names}


_PODS = {"namespaces": ("namespaces",), "labelSelector": ("labelSelector",)}
_THRESHOLDS = "nodeResourceUtilizationThresholds"
#: For each strategy its arguments, and where in `params` each one comes from; lists from two places are joined.
_ARGUMENTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "RemovePodsViolatingNodeTaints": _PODS
    | {name: (name,) for name in ("includePreferNoSchedule", "excludedTaints", "includedTaints")},
    "RemoveFailedPods": _PODS
    | _from("failedPods", "reasons", "excludeOwnerKinds", "minPodLifetimeSeconds", "includingInitContainers"),
    "RemovePodsViolatingNodeAffinity": _PODS | {"nodeAffinityType": ("nodeAffinityType",)},
    "RemovePodsViolatingInterPodAntiAffinity": _PODS,
    "RemovePodsHavingTooManyRestarts": _PODS
    | _from("podsHavingTooManyRestarts", "podRestartThreshold", "includingInitContainers"),
    "PodLifeTime": _PODS
    | _from("podLifeTime", "maxPodLifeTimeSeconds")
    | {"states": ("podLifeTime.podStatusPhases", "podLifeTime.states")},
    "RemoveDuplicates": {"namespaces": ("namespaces",)} | _from("removeDuplicates", "excludeOwnerKinds"),
    "RemovePodsViolatingTopologySpreadConstraint": _PODS,
    "HighNodeUtilization": {"evictableNamespaces": ("namespaces",)} | _from(_THRESHOLDS, "thresholds", "numberOfNodes"),
    "LowNodeUtilization": {"evictableNamespaces": ("namespaces",)}
    | _from(_THRESHOLDS, "thresholds", "targetThresholds", "useDeviationThresholds", "numberOfNodes"),
}
_SPREAD = "RemovePodsViolatingTopologySpreadConstraint"
_WITHOUT_NODE_FIT = "PodLifeTime"

_SOURCES = sorted({source for arguments in _ARGUMENTS.values() for each in arguments.values() for source in each})
_GROUPS = {
    group: (part(*(key for _, key in keys)) | None, None)
    for group, keys in groupby((each.split(".") for each in _SOURCES if "." in each), itemgetter(0))
}
StrategyParams = part(
    *(each for each in _SOURCES if "." not in each),
    **_GROUPS,
    **dict.fromkeys(("includeSoftConstraints", "nodeFit"), (bool, False)),
    thresholdPriority=(Int | None, None),
    thresholdPriorityClassName=(str, ""),
)
OldStrategy = part(enabled=(bool, False), weight=(Int, 0), params=(StrategyParams, StrategyParams()))
_LIMITS = ("nodeSelector", "maxNoOfPodsToEvictPerNode", "maxNoOfPodsToEvictPerNamespace")
_SWITCHES = (
    *("evictFailedBarePods", "evictLocalStoragePods", "evictSystemCriticalPods", "evictDaemonSetPods", "ignorePvcPods"),
)
OldPolicy = part(
    *("apiVersion", "kind", *_LIMITS),
    strategies=(GenericAlias(dict, (str, OldStrategy | None)), Field(default_factory=dict)),
    **dict.fromkeys(_SWITCHES, (bool, False)),
)


def converted(document: DocumentNode, plugins: Mapping[str, Plugin], findings: Findings) -> DocumentNode:
    """Return the document as v1alpha2, with each enabled strategy in a profile of its own.

    A strategy that does not exist is an error even where it is disabled.
    """
    version, strategies = document.at("apiVersion"), document.at("strategies")
    findings.notice(
        version.place if version else document.place,
        f"{API_VERSION} is deprecated; it is read as {NEW_API_VERSION}, each strategy in a profile of its own",
    )
    old = read(OldPolicy, document, findings, lenient=True) or OldPolicy()
    profiles = []
    for name, node in strategies.entries().items() if strategies else ():
        strategy = old.strategies.get(name) or OldStrategy()
        if name in _ARGUMENTS and name in plugins:
            if strategy.enabled:
                profiles.append(_profile(name, node, document, strategy.params, plugins[name], findings))
        elif name != EVICTOR or strategy.enabled:
            hint = did_you_mean(name, (each for each in _ARGUMENTS if each in plugins))
            findings.error(node.place, f"no strategy of {API_VERSION} is called {name!r}{hint}")
    limits = {key: limit for key in _LIMITS if (limit := document.at(key))}
    return node_of({"apiVersion": NEW_API_VERSION, "kind": KIND, "profiles": profiles, **limits}, document.place)


def _profile(
    name: str, strategy: DocumentNode, document: DocumentNode, old: Any, plugin: Plugin, findings: Findings
) -> DocumentNode:
    params = strategy.at("params") or DocumentNode({}, strategy.place)
    _note_unused(name, strategy, params, findings)
    evictor = {key: node for key in _SWITCHES if (node := document.at(key))}
    if old.nodeFit and name != _WITHOUT_NODE_FIT:
        evictor["nodeFit"] = at(params, "nodeFit")
    evictor |= _threshold(name, old, params, findings)
    config = [{"name": EVICTOR, "args": evictor}, {"name": name, "args": _arguments(name, old, params)}]
    point = "balance" if "balance" in plugin.points else "deschedule"
    profile = {"name": f"strategy-{name}-profile", "pluginConfig": config, "plugins": {point: {"enabled": [name]}}}
    return DocumentNode(node_of(profile, params.place).value, strategy.place)


def _threshold(name: str, old: Any, params: DocumentNode, findings: Findings) -> dict[str, DocumentNode]:
    value, class_name = old.thresholdPriority, old.thresholdPriorityClassName
    if value is None and not class_name:
        return {}
    key, given = ("name", "thresholdPriorityClassName") if value is None else ("value", "thresholdPriority")
    place = at(params, given).place
    if value is not None and class_name:
        findings.error(place, f"{name}: give either thresholdPriority or thresholdPriorityClassName, not both")
    return {"priorityThreshold": node_of({key: class_name if value is None else value}, place)}


def _arguments(name: str, old: Any, params: DocumentNode) -> dict[str, DocumentNode]:
    args = {}
    for argument, sources in _ARGUMENTS[name].items():
        found = [node for source in sources if (node := params.at(*source.split(".")))]
        if found:
            args[argument] = _joined(found)
    if name == _SPREAD:
        place = at(params, "includeSoftConstraints").place
        wanted = ("DoNotSchedule", *(["ScheduleAnyway"] if old.includeSoftConstraints else []))
        args |= {"constraints": node_of(wanted, place), "topologyBalanceNodeFit": node_of(True, place)}
    return args


def _joined(nodes: list[DocumentNode]) -> DocumentNode:
    """Return several lists as one; a value that is not a list is returned alone, and refused later as an argument."""
    wrong = [node for node in nodes if not isinstance(node.value, tuple)]
    if wrong or len(nodes) == 1:
        return (wrong or nodes)[0]
    return DocumentNode(tuple(chain.from_iterable(node.items() for node in nodes)), nodes[0].place)


def _note_unused(name: str, strategy: DocumentNode, params: DocumentNode, findings: Findings) -> None:
    if weight := strategy.at("weight"):
        findings.ignored(weight.place, "weight has no effect, and never had")
    used = {source.split(".")[0] for sources in _ARGUMENTS[name].values() for source in sources}
    used |= {"thresholdPriority", "thresholdPriorityClassName"}
    used |= {"includeSoftConstraints"} if name == _SPREAD else set()
    used |= {"nodeFit"} if name != _WITHOUT_NODE_FIT else set()
    known = {field.alias for field in StrategyParams.model_fields.values()}
    for key, node in params.entries().items():
        if key in known - used and node.value not in (None, False):
            findings.ignored(node.place, f"{name} does not use {key}: it has no effect")
