"""Nodes, PodDisruptionBudgets, the small kinds, and usage (metrics.k8s.io) from the API server's JSON.

A PodDisruptionBudget that cannot be read allows nothing.
"""

from datetime import UTC, datetime
from operator import attrgetter, itemgetter
from typing import Annotated, Any

import msgspec

from rebalancer.cluster.measured import NodeMetrics, PodMetrics
from rebalancer.cluster.node import Node, NodeImage
from rebalancer.cluster.resources import Resources, add, parse_resources
from rebalancer.cluster.scheduler_inputs import Notes
from rebalancer.cluster.selectors import EVERYTHING, Labels
from rebalancer.cluster.snapshot import EVERY_NAMESPACE, DisruptionBudget
from rebalancer.cluster.taints import Taint
from rebalancer.kube.wire.annotations import NodeAnnotations, OwnerMetadata
from rebalancer.kube.wire.pages import Kind
from rebalancer.kube.wire.shared_fields import Metadata, NamedObject, Quantities, SelectingWire, named, selector

#: What Kubernetes keeps in 32 bits.
LOWEST = -(2**31)
Int32 = Annotated[int, msgspec.Meta(ge=LOWEST, le=2**31 - 1)]


def _name_of(raw: bytes) -> str:
    return named(msgspec.json.decode(raw, type=NamedObject).metadata.name)


class _Taint(msgspec.Struct):
    key: str = ""
    value: str | None = None
    effect: str | None = None


class _NodeSpec(msgspec.Struct):
    unschedulable: bool | None = None
    taints: list[_Taint] | None = None


class _NodeCondition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    last_heartbeat_time: datetime | None = None
    last_transition_time: datetime | None = None


class _Address(msgspec.Struct):
    type: str = ""
    address: str = ""


class _NodeInfo(msgspec.Struct, rename="camel"):
    kubelet_version: str | None = None


class _Image(msgspec.Struct, gc=False, rename="camel"):
    names: list[str] | None = None
    size_bytes: int = 0


class _NodeStatus(msgspec.Struct, rename="camel"):
    allocatable: Quantities | None = None
    capacity: Quantities | None = None
    conditions: list[_NodeCondition] | None = None
    addresses: list[_Address] | None = None
    node_info: _NodeInfo | None = None
    images: list[_Image] | None = None


class _NodeMetadata(Metadata):
    creation_timestamp: datetime | None = None
    annotations: NodeAnnotations | None = None


class NodeWire(msgspec.Struct):
    """A node as the API server writes it."""

    metadata: _NodeMetadata = msgspec.field(default_factory=_NodeMetadata)
    spec: _NodeSpec | None = None
    status: _NodeStatus | None = None


def node(wire: NodeWire) -> Node:
    """Return the node; raise ValueError if it has no name, or a quantity in its status cannot be read."""
    spec, status = wire.spec or _NodeSpec(), wire.status or _NodeStatus()
    conditions, annotations = status.conditions or [], wire.metadata.annotations or NodeAnnotations()
    times = (aware(time) for each in conditions for time in (each.last_heartbeat_time, each.last_transition_time))
    return Node(
        name=named(wire.metadata.name),
        labels=wire.metadata.labels or {},
        unschedulable=bool(spec.unschedulable),
        ready=all(each.status == "True" for each in conditions if each.type == "Ready"),
        taints=tuple(Taint(each.key, each.value or "", each.effect or "") for each in spec.taints or ()),
        allocatable=parse_resources(status.allocatable or {}),
        capacity=parse_resources(status.capacity or {}),
        # The first of a type counts.
        addresses={each.type: each.address for each in reversed(status.addresses or ())},
        created=aware(wire.metadata.creation_timestamp),
        seen=max((time for time in times if time is not None), default=None),
        kubelet_version=(status.node_info or _NodeInfo()).kubelet_version or "",
        images=tuple(NodeImage(tuple(each.names or ()), each.size_bytes) for each in status.images or ()),
        keeping=annotations.keeping,
        pressure=annotations.marks,
        held_until=annotations.held_until,
        avoided=annotations.avoid is not msgspec.UNSET,  # by a run that steers, whatever the keys of its taints
        terminating=wire.metadata.deletion_timestamp is not None,
    )


def aware(time: datetime | None) -> datetime | None:
    """Return a time with its zone: UTC where it has none."""
    return time.replace(tzinfo=UTC) if time is not None and time.tzinfo is None else time


class _PriorityClassWire(msgspec.Struct):
    value: Int32
    metadata: Metadata = msgspec.field(default_factory=Metadata)


class OwnerObject(msgspec.Struct):
    """What is read of a namespace, or of an owner of pods that is looked at again."""

    metadata: OwnerMetadata = msgspec.field(default_factory=OwnerMetadata)


def _namespace(wire: OwnerObject) -> tuple[str, Labels, Notes | None, str]:
    return wire.metadata.name, wire.metadata.labels or {}, wire.metadata.notes, wire.metadata.uid


class _UsedContainer(msgspec.Struct):
    usage: Quantities | None = None


class _NodeMetricsWire(_UsedContainer):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    timestamp: datetime | None = None


class _PodMetricsWire(msgspec.Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    timestamp: datetime | None = None
    containers: list[_UsedContainer] | None = None


def _pod_metrics(wire: _PodMetricsWire) -> PodMetrics:
    containers = [_sampled(each.usage) for each in wire.containers or ()]
    common = set.intersection(*(set(each) for each in containers)) if containers else set()
    sums: dict[str, int] = {}
    for each in containers:
        add(sums, {name: each[name] for name in sorted(common)})
    return PodMetrics(*wire.metadata.key, sums, aware(wire.timestamp))


def _sampled(usage: Quantities | None) -> Resources:
    return {name: amount for name, amount in parse_resources(usage or {}).items() if amount >= 0}


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


class _PlainBudget(msgspec.Struct):
    metadata: Any = None
    spec: Any = None


def _budget_stand_in(raw: bytes, problem: str) -> DisruptionBudget:
    """Return a PDB that allows nothing for the pods of its selector, else its namespace, else all, as can be read."""
    try:
        plain = msgspec.json.decode(raw, type=_PlainBudget)
    except (ValueError, msgspec.MsgspecError):
        plain = _PlainBudget()
    name = namespace = None
    if isinstance(plain.metadata, dict):
        name, namespace = plain.metadata.get("name"), plain.metadata.get("namespace")
        namespace = "default" if namespace in (None, "") else namespace
    try:
        selected = selector(msgspec.convert(plain.spec, SelectingWire).selector)
    except (ValueError, msgspec.MsgspecError):
        selected = EVERYTHING
    return DisruptionBudget(
        namespace=namespace if isinstance(namespace, str) else EVERY_NAMESPACE,
        name=name if isinstance(name, str) else "",
        selector=selected,
        problem=problem,
    )


_NAME, _FIRST = attrgetter("name"), itemgetter(0)
KINDS: tuple[Kind[Any, Any], ...] = (
    Kind(
        "Node",
        NodeWire,
        node,
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
    Kind(
        "NodeMetrics",
        _NodeMetricsWire,
        lambda wire: NodeMetrics(wire.metadata.name, _sampled(wire.usage), aware(wire.timestamp)),
        _NAME,
    ),
    Kind("PodMetrics", _PodMetricsWire, _pod_metrics, attrgetter("namespace", "name")),
)
