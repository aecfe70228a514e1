"""The spec of a pod or of a template of pods as the API server writes it; equal ones make one shared `PodSpec`."""

from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter
from typing import TypeVar

import msgspec

from rebalancer.cluster.pod import PodSpec
from rebalancer.cluster.resources import CPU, MEMORY, Resources, parse_resources
from rebalancer.kube.wire import parts, placement, volumes
from rebalancer.kube.wire.objects import Int32
from rebalancer.kube.wire.parts import decode, decode_list
from rebalancer.kube.wire.volumes import PodVolumeWire

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Interned(dict[K, T]):
    """One object for each distinct key, made when the key is first looked up: equal bytes are decoded once.

    Replicas are copies: thousands of pods share a few label sets, owners and specs.  Equal bytes have equal meaning, so
    each is decoded once and shared, which saves time and memory and makes `is` a valid cache key.
    """

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[K], T]) -> None:
        self._make = make

    def __missing__(self, key: K) -> T:
        made = self[key] = self._make(key)
        return made


class ContainerWire(msgspec.Struct, gc=False, rename="camel"):
    """A container, narrowed to what is used."""

    image: str | None = None
    resources: msgspec.Raw = msgspec.Raw()
    ports: msgspec.Raw = msgspec.Raw()
    restart_policy: str | None = None


class SpecWire(msgspec.Struct, gc=False, rename="camel"):
    """The spec of a pod or of a template of pods, narrowed to what is used."""

    node_name: str | None = None
    containers: list[ContainerWire] | None = None
    init_containers: list[ContainerWire] | None = None
    volumes: list[PodVolumeWire] | None = None
    resources: msgspec.Raw = msgspec.Raw()
    overhead: msgspec.Raw = msgspec.Raw()
    node_selector: msgspec.Raw = msgspec.Raw()
    affinity: msgspec.Raw = msgspec.Raw()
    tolerations: msgspec.Raw = msgspec.Raw()
    topology_spread_constraints: msgspec.Raw = msgspec.Raw()
    resource_claims: list[msgspec.Raw] | None = None
    priority: Int32 | None = None
    priority_class_name: str | None = None
    scheduler_name: str | None = None
    scheduling_gates: list[msgspec.Raw] | None = None
    preemption_policy: str | None = None


#: What else matters of a spec: texts of JSON, which become bytes, and values.
_TEXTS = attrgetter("resources", "overhead", "node_selector", "affinity", "tolerations", "topology_spread_constraints")
_VALUES = attrgetter("priority", "priority_class_name", "scheduler_name", "preemption_policy")


class Specs:
    """Turns specs into the model; specs that are equal in what is used share one object."""

    def __init__(self) -> None:
        self._known: dict[Hashable, PodSpec] = {}

    def of(self, spec: SpecWire) -> PodSpec:
        """Return the spec; one that cannot be understood in full carries its `problem` and is not to be trusted."""
        declared = volumes.of_spec(spec.volumes)
        key = (
            tuple([_container_key(each) for each in spec.containers or ()]),
            tuple([_container_key(each) for each in spec.init_containers]) if spec.init_containers else (),
            *map(bytes, _TEXTS(spec)),
            *_VALUES(spec),
            bool(spec.resource_claims),
            bool(spec.scheduling_gates),
            declared,
        )
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _spec_or_problem(spec, declared)
        return known


def _container_key(container: ContainerWire) -> Hashable:
    restarts = container.restart_policy == "Always"
    return container.image, bytes(container.resources), restarts, bytes(container.ports)


def _spec_or_problem(spec: SpecWire, declared: volumes.OfSpec) -> PodSpec:
    try:
        return _spec(spec, declared)
    except (msgspec.MsgspecError, ValueError) as error:
        return PodSpec(
            requests={},
            images=_images(spec),
            priority=spec.priority,
            priority_class=spec.priority_class_name or "",
            local_storage=declared.local,
            resource_claims=bool(spec.resource_claims),
            problem=str(error),
        )


def _spec(spec: SpecWire, declared: volumes.OfSpec) -> PodSpec:
    sources = _sources(spec, declared)
    every = (*sources.containers, *sources.init_containers)
    node, apart = sources.affinity.node_affinity, sources.affinity.pod_anti_affinity or parts.PodTermsWire()
    required, preferred = (node.required, node.preferred or ()) if node else (None, ())
    return PodSpec(
        requests=placement.requests(sources, {}),
        requested=frozenset(name for each in every for name in each.requests),
        images=_images(spec),
        node_selector=decode(bytes(spec.node_selector), dict[str, str]),
        node_terms=tuple(parts.node_term(each) for each in required.node_selector_terms or ()) if required else None,
        preferred=tuple(parts.preferred_term(each) for each in preferred),
        node_affinity=node is not None,
        tolerations=decode_list(bytes(spec.tolerations), parts.TolerationWire, parts.toleration),
        anti_affinity=tuple(parts.anti_affinity_term(each) for each in apart.required or ()),
        spread=decode_list(bytes(spec.topology_spread_constraints), parts.SpreadWire, parts.spread_constraint),
        priority=spec.priority,
        priority_class=spec.priority_class_name or "",
        local_storage=declared.local,
        resource_claims=bool(spec.resource_claims),
        qos=quality_of_service([(each.requests, each.limits) for each in every]),
        placement=placement.placement(sources),
    )


def _images(spec: SpecWire) -> tuple[str, ...]:
    return tuple(container.image or "" for container in spec.containers or ())


def _sources(spec: SpecWire, declared: volumes.OfSpec) -> placement.Sources:
    return placement.Sources(
        containers=tuple(map(_container, spec.containers or ())),
        init_containers=tuple(map(_container, spec.init_containers or ())),
        pod_level=_resources(spec.resources)[0],
        overhead=parse_resources(decode(bytes(spec.overhead), parts.Quantities) or {}),
        affinity=decode(bytes(spec.affinity), parts.AffinityWire) or parts.AffinityWire(),
        scheduler=spec.scheduler_name or "",
        gated=bool(spec.scheduling_gates),
        preemption=spec.preemption_policy or "",
        volumes=declared,
    )


def _container(wire: ContainerWire) -> placement.ContainerSource:
    requests, limits = _resources(wire.resources)
    restartable = wire.restart_policy == "Always"
    return placement.ContainerSource(wire.image or "", requests, restartable, bytes(wire.ports), limits)


def _resources(raw: msgspec.Raw) -> tuple[Resources, Resources]:
    """Return requests and limits."""
    wire = decode(bytes(raw), parts.ResourcesWire) or parts.ResourcesWire()
    return parse_resources(wire.requests or {}), parse_resources(wire.limits or {})


def quality_of_service(containers: Sequence[tuple[Resources, Resources]]) -> str:
    """Return BestEffort, Burstable or Guaranteed from requests and limits of cpu and memory.

    Source: the Kubernetes documentation, Pod Quality of Service Classes; values of zero do not count.
    """
    pairs = [
        (requested.get(name, 0), limited.get(name, 0)) for requested, limited in containers for name in (CPU, MEMORY)
    ]
    if not any(request > 0 or limit > 0 for request, limit in pairs):
        return "BestEffort"
    return "Guaranteed" if all(request == limit > 0 for request, limit in pairs) else "Burstable"
