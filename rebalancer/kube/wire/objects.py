"""Nodes, PodDisruptionBudgets, the small kinds, and usage (metrics.k8s.io) from the API server's JSON.

A PodDisruptionBudget that cannot be read allows nothing.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from operator import attrgetter, itemgetter
from typing import Annotated, Any

import msgspec

from rebalancer.cluster.measured import NodeMetrics, PodMetrics
from rebalancer.cluster.node import Node, NodeImage
from rebalancer.cluster.resources import Resources, parse_resources
from rebalancer.cluster.scheduler_inputs import Notes
from rebalancer.cluster.selectors import EVERYTHING, Labels, LabelSelector
from rebalancer.cluster.snapshot import EVERY_NAMESPACE, DisruptionBudget
from rebalancer.cluster.taints import Taint
from rebalancer.kube.wire.annotations import NodeAnnotations, OwnerMetadata
from rebalancer.kube.wire.fields import LABELS, NAME, NAMESPACE, TERMINATING, At, Reader
from rebalancer.kube.wire.pages import Kind
from rebalancer.kube.wire.shared_fields import Metadata, NamedObject, Quantities, SelectingWire, named, selector

#: What Kubernetes keeps in 32 bits.
LOWEST = -(2**31)
Int32 = Annotated[int, msgspec.Meta(ge=LOWEST, le=2**31 - 1)]


def _name_of(raw: bytes) -> str:
    return named(msgspec.json.decode(raw, type=NamedObject).metadata.name)


def aware(time: datetime | None) -> datetime | None:
    """Return a time with its zone: UTC where it has none."""
    return time.replace(tzinfo=UTC) if time is not None and time.tzinfo is None else time


class _NodeCondition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    last_heartbeat_time: datetime | None = None
    last_transition_time: datetime | None = None


class _Address(msgspec.Struct):
    type: str = ""
    address: str = ""


class _Taint(msgspec.Struct):
    key: str = ""
    value: str | None = None
    effect: str | None = None


class _Image(msgspec.Struct, gc=False, rename="camel"):
    names: tuple[str, ...] | None = None
    size_bytes: int = 0


def _is_ready(conditions: list[_NodeCondition]) -> bool:
    return all(each.status == "True" for each in conditions if each.type == "Ready")


def _newest(conditions: list[_NodeCondition]) -> datetime | None:
    times = [aware(time) for each in conditions for time in (each.last_heartbeat_time, each.last_transition_time)]
    return max((time for time in times if time is not None), default=None)


def _annotations(made: Callable[[NodeAnnotations], object]) -> At:
    return At("metadata.annotations", NodeAnnotations, made)


#: Reads a node; a ValueError if it has no name, or a quantity in its status cannot be read.
NODE = Reader(
    Node,
    name=NAME,
    labels=LABELS,
    unschedulable=At("spec.unschedulable", bool),
    ready=At("status.conditions", list[_NodeCondition], _is_ready),
    taints=At(
        "spec.taints",
        list[_Taint],
        lambda taints: tuple(Taint(each.key, each.value or "", each.effect or "") for each in taints),
    ),
    allocatable=At("status.allocatable", Quantities, parse_resources),
    capacity=At("status.capacity", Quantities, parse_resources),
    # The first of a type counts.
    addresses=At("status.addresses", list[_Address], lambda found: {each.type: each.address for each in found[::-1]}),
    created=At("metadata.creationTimestamp", datetime, aware),
    seen=At("status.conditions", list[_NodeCondition], _newest),
    kubelet_version=At("status.nodeInfo.kubeletVersion"),
    images=At(
        "status.images",
        list[_Image],
        lambda images: tuple(NodeImage(each.names or (), each.size_bytes) for each in images),
    ),
    keeping=_annotations(attrgetter("keeping")),
    pressure=_annotations(attrgetter("marks")),
    held_until=_annotations(attrgetter("held_until")),
    # by a run that steers, whatever the keys of its taints
    avoided=_annotations(lambda found: found.avoid is not msgspec.UNSET),
    terminating=TERMINATING,
)


class _PriorityClassWire(msgspec.Struct):
    value: Int32
    metadata: Metadata = msgspec.field(default_factory=Metadata)


class OwnerObject(msgspec.Struct):
    """What is read of a namespace, or of an owner of pods that is looked at again."""

    metadata: OwnerMetadata = msgspec.field(default_factory=OwnerMetadata)


def _namespace(wire: OwnerObject) -> tuple[str, Labels, Notes | None, str]:
    return wire.metadata.name, wire.metadata.labels or {}, wire.metadata.notes, wire.metadata.uid


def _sampled(usage: Mapping[str, str | float]) -> Resources:
    return {name: amount for name, amount in parse_resources(usage).items() if amount >= 0}


class _UsedContainer(msgspec.Struct):
    usage: Quantities | None = None


def _sum(containers: list[_UsedContainer]) -> Resources:
    """Return what containers use together of what was measured of all of them."""
    used = [_sampled(each.usage or {}) for each in containers]
    common = set.intersection(*map(set, used)) if used else set()
    return {name: sum(each[name] for each in used) for name in sorted(common)}


_TAKEN = At("timestamp", datetime, aware)
_NODE_METRICS = Reader(NodeMetrics, name=NAME, usage=At("usage", Quantities, _sampled, {}), taken=_TAKEN)
_POD_METRICS = Reader(
    PodMetrics, namespace=NAMESPACE, name=NAME, usage=At("containers", list[_UsedContainer], _sum, {}), taken=_TAKEN
)


_POLICIES = ("IfHealthyBudget", "AlwaysAllow")


class _BudgetSpec(SelectingWire, rename="camel"):
    unhealthy_pod_eviction_policy: str | None = None


class _BudgetStatus(msgspec.Struct, rename="camel"):
    disruptions_allowed: Int32 = 0
    observed_generation: int = 0
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0
    disrupted_pods: dict[str, Any] | None = None


class _BudgetWire(msgspec.Struct):
    spec: _BudgetSpec
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    status: _BudgetStatus | None = None


def _budget(wire: _BudgetWire) -> DisruptionBudget:
    status = wire.status or _BudgetStatus()
    policy = wire.spec.unhealthy_pod_eviction_policy
    if policy is not None and policy not in _POLICIES:
        raise ValueError(f"unhealthyPodEvictionPolicy {policy!r} is not known: {' or '.join(_POLICIES)}")
    namespace, name = wire.metadata.key
    return DisruptionBudget(
        namespace=namespace,
        name=name,
        selector=selector(wire.spec.selector),
        disruptions_allowed=status.disruptions_allowed,
        observed=status.observed_generation >= wire.metadata.generation,
        current_healthy=status.current_healthy,
        desired_healthy=status.desired_healthy,
        unhealthy_policy=policy or _POLICIES[0],
        disrupted=frozenset(status.disrupted_pods or ()),
    )


def _budget_stand_in(raw: bytes, problem: str) -> DisruptionBudget:
    """Return a PDB that allows nothing for the pods of its selector, else its namespace, else all, as can be read."""
    plain = NamedObject()
    selected: LabelSelector | None = EVERYTHING
    with suppress(ValueError):
        plain = msgspec.json.decode(raw, type=NamedObject)
        selected = selector(msgspec.convert(plain.spec, SelectingWire).selector)
    name, namespace = plain.metadata.name, plain.metadata.namespace
    namespace = "default" if namespace in (None, "") else namespace
    is_named = isinstance(name, str) and isinstance(namespace, str)
    return DisruptionBudget(
        namespace=namespace if is_named else EVERY_NAMESPACE,
        name=name if is_named else "",
        selector=selected,
        problem=problem,
    )


_NAME, _FIRST = attrgetter("name"), itemgetter(0)
KINDS: tuple[Kind[Any, Any], ...] = (
    Kind(
        "Node",
        NODE.wire,
        NODE,
        _NAME,
        lambda raw, problem: Node(name=_name_of(raw), ready=False, unschedulable=True, problem=problem),
        "left alone, and so are its pods",
    ),
    Kind("Namespace", OwnerObject, _namespace, _FIRST, otherwise="its labels count as unknown"),
    Kind(
        "PodDisruptionBudget",
        _BudgetWire,
        _budget,
        lambda budget: (budget.namespace, budget.name) if budget.name else None,
        _budget_stand_in,
        "allows no disruption",
    ),
    Kind(
        "PriorityClass",
        _PriorityClassWire,
        lambda wire: (wire.metadata.name, wire.value),
        _FIRST,
        # as a threshold the lowest value there is protects every pod with a priority
        lambda raw, _problem: (_name_of(raw), LOWEST),
        "counts as the lowest, so that no priority is below it",
    ),
    Kind("NodeMetrics", _NODE_METRICS.wire, _NODE_METRICS, _NAME),
    Kind("PodMetrics", _POD_METRICS.wire, _POD_METRICS, attrgetter("namespace", "name")),
)
