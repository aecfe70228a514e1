"""PodDisruptionBudgets from the API server's JSON; one that cannot be read allows nothing."""

from typing import Any

import msgspec

from rebalancer.cluster.pdb import EVERY_NAMESPACE, DisruptionBudget
from rebalancer.cluster.selectors import EVERYTHING, LabelSelector
from rebalancer.kube.wire.objects import Int32, Metadata
from rebalancer.kube.wire.parts import selector

_DEFAULT_NAMESPACE = "default"
_POLICIES = ("IfHealthyBudget", "AlwaysAllow")


class _BudgetSpec(msgspec.Struct, rename="camel"):
    selector: dict[str, Any] | None = None
    unhealthy_pod_eviction_policy: str | None = None


class _BudgetStatus(msgspec.Struct, rename="camel"):
    disruptions_allowed: Int32 = 0
    observed_generation: int = 0
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0
    disrupted_pods: dict[str, Any] | None = None


class BudgetWire(msgspec.Struct):
    """A PodDisruptionBudget as the API server writes it."""

    spec: _BudgetSpec
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    status: _BudgetStatus | None = None


def budget(wire: BudgetWire) -> DisruptionBudget:
    """Return the PDB.

    Raises:
        ValueError: its selector or its unhealthyPodEvictionPolicy cannot be understood.
    """
    status = wire.status or _BudgetStatus()
    policy = wire.spec.unhealthy_pod_eviction_policy
    if policy is not None and policy not in _POLICIES:
        raise ValueError(f"unhealthyPodEvictionPolicy {policy!r} is not known: {' or '.join(_POLICIES)}")
    return DisruptionBudget(
        namespace=wire.metadata.namespace or _DEFAULT_NAMESPACE,
        name=wire.metadata.name,
        selector=selector(wire.spec.selector),
        disruptions_allowed=status.disruptions_allowed,
        observed=status.observed_generation >= wire.metadata.generation,
        current_healthy=status.current_healthy,
        desired_healthy=status.desired_healthy,
        unhealthy_policy=policy or _POLICIES[0],
        disrupted=frozenset(status.disrupted_pods or ()),
    )


def stand_in(raw: bytes, problem: str) -> DisruptionBudget:
    """Return what stands for a PDB that cannot be read: it allows nothing, for all pods that it may select.

    These are the pods of its selector if that can be read, else those of its namespace, else all pods.
    """
    document = _mapping(_decoded(raw))
    metadata = _mapping(document.get("metadata"))
    name = metadata.get("name")
    return DisruptionBudget(
        namespace=_namespace(document.get("metadata")),
        name=name if isinstance(name, str) else "",
        selector=_selector(document.get("spec")),
        problem=problem,
    )


def _decoded(raw: bytes) -> object:
    try:
        return msgspec.json.decode(raw)
    except (ValueError, msgspec.MsgspecError):
        return None


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _namespace(metadata: object) -> str:
    if not isinstance(metadata, dict):
        return EVERY_NAMESPACE
    namespace = metadata.get("namespace")
    if namespace is None or namespace == "":
        return _DEFAULT_NAMESPACE
    return namespace if isinstance(namespace, str) else EVERY_NAMESPACE


def _selector(spec: object) -> LabelSelector | None:
    try:
        return selector(msgspec.convert(spec, _Selecting).selector)
    except (ValueError, msgspec.MsgspecError):
        return EVERYTHING


class _Selecting(msgspec.Struct):
    selector: dict[str, Any] | None = None
