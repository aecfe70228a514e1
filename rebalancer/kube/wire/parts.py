"""The pieces of a pod's spec as the API server writes them, and what they become."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from rebalancer.cluster.pod import Owner, PodAffinityTerm, PreferredTerm, SpreadConstraint
from rebalancer.cluster.selectors import LabelSelector, NodeSelectorTerm, Requirement, parse_label_selector
from rebalancer.cluster.taints import Toleration

T = TypeVar("T")
M = TypeVar("M")
Quantities = dict[str, str | int | float]


def decode(raw: bytes, kind: type[T]) -> T | None:
    """Decode the bytes of an optional part; absent and null are None."""
    return msgspec.json.decode(raw, type=kind) if raw and raw != b"null" else None


def decode_list(raw: bytes, wire: type[T], convert: Callable[[T], M]) -> tuple[M, ...]:
    """Decode the bytes of an optional list and convert each item."""
    return tuple(convert(each) for each in decode(raw, list[wire]) or ())  # type: ignore[valid-type]  # a type at run time


class ResourcesWire(msgspec.Struct, gc=False):
    """`resources` of a container or a pod."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class RequirementWire(msgspec.Struct, gc=False):
    """A node selector requirement."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class NodeTermWire(msgspec.Struct, gc=False, rename="camel"):
    """A node selector term."""

    match_expressions: list[RequirementWire] | None = None
    match_fields: list[RequirementWire] | None = None


class NodeSelectorWire(msgspec.Struct, gc=False, rename="camel"):
    """Required node affinity."""

    node_selector_terms: list[NodeTermWire] | None = None


class PreferredWire(msgspec.Struct, gc=False):
    """A preferred node affinity term."""

    weight: int = 0
    preference: NodeTermWire = msgspec.field(default_factory=NodeTermWire)


class NodeAffinityWire(msgspec.Struct, gc=False):
    """Node affinity, required and preferred."""

    required: NodeSelectorWire | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[PreferredWire] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodTermWire(msgspec.Struct, gc=False, rename="camel"):
    """A pod affinity term."""

    topology_key: str = ""
    label_selector: dict[str, Any] | None = None
    namespaces: list[str] | None = None
    namespace_selector: dict[str, Any] | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class WeightedTermWire(msgspec.Struct, gc=False, rename="camel"):
    """A preferred pod affinity term."""

    weight: int = 0
    pod_affinity_term: PodTermWire = msgspec.field(default_factory=PodTermWire)


class PodTermsWire(msgspec.Struct, gc=False):
    """Pod affinity or pod anti-affinity."""

    required: list[PodTermWire] | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[WeightedTermWire] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class AffinityWire(msgspec.Struct, gc=False, rename="camel"):
    """`affinity` of a pod."""

    node_affinity: NodeAffinityWire | None = None
    pod_affinity: PodTermsWire | None = None
    pod_anti_affinity: PodTermsWire | None = None


class SpreadWire(msgspec.Struct, gc=False, rename="camel"):
    """A topology spread constraint."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: dict[str, Any] | None = None
    match_label_keys: list[str] | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None


class TolerationWire(msgspec.Struct, gc=False):
    """A toleration."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class OwnerWire(msgspec.Struct, gc=False):
    """An ownerReference."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


def selector(value: Mapping[str, Any] | None) -> LabelSelector | None:
    """Return the parsed selector; None stays None."""
    return None if value is None else parse_label_selector(value)


def node_term(term: NodeTermWire) -> NodeSelectorTerm:
    """Return the model of a node selector term."""
    return NodeSelectorTerm(_requirements(term.match_expressions), _requirements(term.match_fields))


def _requirements(wire: list[RequirementWire] | None) -> tuple[Requirement, ...]:
    return tuple(Requirement(each.key, each.operator, tuple(each.values or ())) for each in wire or ())


def preferred_term(wire: PreferredWire) -> PreferredTerm:
    """Return the model of a preferred node affinity term."""
    return PreferredTerm(wire.weight, node_term(wire.preference))


def anti_affinity_term(wire: PodTermWire) -> PodAffinityTerm:
    """Return the model of a required anti-affinity term."""
    return PodAffinityTerm(
        topology_key=wire.topology_key,
        selector=selector(wire.label_selector),
        namespaces=tuple(wire.namespaces or ()),
        namespace_selector=selector(wire.namespace_selector),
        match_label_keys=tuple(wire.match_label_keys or ()),
        mismatch_label_keys=tuple(wire.mismatch_label_keys or ()),
    )


def spread_constraint(wire: SpreadWire) -> SpreadConstraint:
    """Return the model of a topology spread constraint, with the API's defaults."""
    return SpreadConstraint(
        max_skew=wire.max_skew,
        topology_key=wire.topology_key,
        when_unsatisfiable=wire.when_unsatisfiable,
        selector=selector(wire.label_selector),
        match_label_keys=tuple(wire.match_label_keys or ()),
        min_domains=wire.min_domains,
        node_affinity_policy=wire.node_affinity_policy or "Honor",
        node_taints_policy=wire.node_taints_policy or "Ignore",
    )


def toleration(wire: TolerationWire) -> Toleration:
    """Return the model of a toleration."""
    return Toleration(wire.key or "", wire.operator or "", wire.value or "", wire.effect or "")


def owner(wire: OwnerWire) -> Owner:
    """Return the model of an ownerReference.

    Raises:
        ValueError: it has no kind, so it might be a DaemonSet.
    """
    if not wire.kind:
        raise ValueError("an owner has no kind")
    return Owner(wire.kind, wire.name, wire.uid, bool(wire.controller))
