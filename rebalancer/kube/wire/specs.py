"""The spec of a pod or of a template of pods as the API server writes it; equal ones make one shared `PodSpec`."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from rebalancer.cluster.pod import PodSpec
from rebalancer.cluster.resources import CPU, MEMORY, Resources, effective_requests, parse_resources
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


class ContainerKey(msgspec.Struct, frozen=True, gc=False):
    """What matters of one container, as bytes."""

    image: str
    resources: bytes
    restartable: bool
    ports: bytes = b""


class SpecKey(msgspec.Struct, frozen=True, gc=False):
    """What matters of one spec, as bytes: equal keys mean equal specs."""

    containers: tuple[ContainerKey, ...]
    init_containers: tuple[ContainerKey, ...]
    resources: bytes
    overhead: bytes
    node_selector: bytes
    affinity: bytes
    tolerations: bytes
    spread: bytes
    priority: int | None
    priority_class: str
    local_storage: bool
    resource_claims: bool
    scheduler: str = ""
    gated: bool = False
    preemption: str = ""
    image_volumes: tuple[str, ...] = ()
    disks: tuple[bytes, ...] = ()
    removed_volumes: tuple[str, ...] = ()


def make_spec(key: SpecKey) -> PodSpec:
    """Return the spec; one that cannot be understood in full carries its `problem` and is not to be trusted."""
    try:
        return _spec(key)
    except (msgspec.MsgspecError, ValueError) as error:
        return PodSpec(
            requests={},
            images=tuple(container.image for container in key.containers),
            priority=key.priority,
            priority_class=key.priority_class,
            local_storage=key.local_storage,
            resource_claims=key.resource_claims,
            problem=str(error),
        )


class _Amounts(NamedTuple):
    """Requests and limits, decoded: of each container, of the pod as a whole, and of its overhead."""

    containers: list[tuple[Resources, Resources]]
    init_containers: list[tuple[Resources, Resources]]
    pod_level: Resources
    overhead: Resources


def _spec(key: SpecKey) -> PodSpec:
    amounts = _amounts(key)
    every = [*amounts.containers, *amounts.init_containers]
    affinity = decode(key.affinity, parts.AffinityWire) or parts.AffinityWire()
    required = affinity.node_affinity and affinity.node_affinity.required
    preferred = (affinity.node_affinity and affinity.node_affinity.preferred) or ()
    anti = (affinity.pod_anti_affinity and affinity.pod_anti_affinity.required) or ()
    return PodSpec(
        requests=_requests(key, amounts),
        requested=frozenset(name for requests, _ in every for name in requests),
        images=tuple(container.image for container in key.containers),
        node_selector=decode(key.node_selector, dict[str, str]),
        node_terms=tuple(parts.node_term(each) for each in required.node_selector_terms or ()) if required else None,
        preferred=tuple(parts.preferred_term(each) for each in preferred),
        node_affinity=affinity.node_affinity is not None,
        tolerations=decode_list(key.tolerations, parts.TolerationWire, parts.toleration),
        anti_affinity=tuple(parts.anti_affinity_term(each) for each in anti),
        spread=decode_list(key.spread, parts.SpreadWire, parts.spread_constraint),
        priority=key.priority,
        priority_class=key.priority_class,
        local_storage=key.local_storage,
        resource_claims=key.resource_claims,
        qos=quality_of_service(every),
        placement=placement.placement(_placement_sources(key, amounts)),
    )


def _amounts(key: SpecKey) -> _Amounts:
    return _Amounts(
        containers=[_resources(each.resources) for each in key.containers],
        init_containers=[_resources(each.resources) for each in key.init_containers],
        pod_level=_resources(key.resources)[0],
        overhead=parse_resources(decode(key.overhead, parts.Quantities) or {}),
    )


def _requests(key: SpecKey, amounts: _Amounts) -> Resources:
    init_containers = zip(amounts.init_containers, key.init_containers, strict=True)
    return effective_requests(
        [requests for requests, _ in amounts.containers],
        [(requests, container.restartable) for (requests, _), container in init_containers],
        amounts.pod_level,
        amounts.overhead,
    )


def _placement_sources(key: SpecKey, amounts: _Amounts) -> placement.Sources:
    return placement.Sources(
        containers=_sources(key.containers, amounts.containers),
        init_containers=_sources(key.init_containers, amounts.init_containers),
        pod_level=amounts.pod_level,
        overhead=amounts.overhead,
        affinity=key.affinity,
        scheduler=key.scheduler,
        gated=key.gated,
        preemption=key.preemption,
        image_volumes=key.image_volumes,
        disks=key.disks,
        removed_volumes=key.removed_volumes,
    )


def _sources(
    keys: Iterable[ContainerKey], resources: Iterable[tuple[Resources, Resources]]
) -> tuple[placement.ContainerSource, ...]:
    return tuple(
        placement.ContainerSource(key.image, requests, key.restartable, key.ports, limits)
        for key, (requests, limits) in zip(keys, resources, strict=True)
    )


def _resources(raw: bytes) -> tuple[Resources, Resources]:
    """Return requests and limits."""
    wire = decode(raw, parts.ResourcesWire) or parts.ResourcesWire()
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


class Specs:
    """Turns specs into the model; specs that are equal in what is used share one object."""

    def __init__(self) -> None:
        self._known: Interned[SpecKey, PodSpec] = Interned(make_spec)

    def of(self, spec: SpecWire) -> PodSpec:
        """Return the spec."""
        return self._known[_key(spec)]


def _key(spec: SpecWire) -> SpecKey:
    declared = spec.volumes or ()
    return SpecKey(
        containers=tuple([_container_key(each) for each in spec.containers or ()]),
        init_containers=tuple([_container_key(each) for each in spec.init_containers]) if spec.init_containers else (),
        resources=bytes(spec.resources),
        overhead=bytes(spec.overhead),
        node_selector=bytes(spec.node_selector),
        affinity=bytes(spec.affinity),
        tolerations=bytes(spec.tolerations),
        spread=bytes(spec.topology_spread_constraints),
        priority=spec.priority,
        priority_class=spec.priority_class_name or "",
        local_storage=True in [volumes.is_local(each) for each in declared],
        resource_claims=bool(spec.resource_claims),
        scheduler=spec.scheduler_name or "",
        gated=bool(spec.scheduling_gates),
        preemption=spec.preemption_policy or "",
        image_volumes=tuple([each.image.reference or "" for each in declared if each.image is not None]),
        disks=tuple([disk for each in declared for disk in volumes.disks(each)]),
        removed_volumes=tuple([kind for each in declared for kind in volumes.removed_kinds(each)]),
    )


def _container_key(container: ContainerWire) -> ContainerKey:
    return ContainerKey(
        container.image or "", bytes(container.resources), container.restart_policy == "Always", bytes(container.ports)
    )
