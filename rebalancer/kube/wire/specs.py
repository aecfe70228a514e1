"""The spec of a pod or of a template of pods as the API server writes it; equal ones make one shared `PodSpec`."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from rebalancer.cluster.pod import ASSUMED, ContainerCpu, HostPort, IscsiDisk, Placement, PodSpec, SpreadConstraint
from rebalancer.cluster.resources import CPU, MEMORY, Resources, effective_requests, parse_resources
from rebalancer.cluster.taints import Toleration
from rebalancer.kube.wire import shared_fields
from rebalancer.kube.wire.objects import Int32
from rebalancer.kube.wire.shared_fields import decode, decode_model


class _ClaimByName(msgspec.Struct, gc=False, rename="camel"):
    claim_name: str = ""


class _Given(msgspec.Struct, frozen=True, gc=False):
    """An object of which it matters only that it is there."""


class _ImageVolume(msgspec.Struct, frozen=True, gc=False):
    reference: str | None = None


class PodVolumeWire(msgspec.Struct, gc=False, rename="camel"):
    """A volume of a pod, narrowed to what is used."""

    name: str = ""
    persistent_volume_claim: _ClaimByName | None = None
    ephemeral: _Given | None = None
    host_path: _Given | None = None
    empty_dir: _Given | None = None
    image: _ImageVolume | None = None
    iscsi: IscsiDisk | None = None  # named in the pod itself, without a claim; this is rare
    gce_persistent_disk: _Given | None = None
    aws_elastic_block_store: _Given | None = None
    rbd: _Given | None = None


#: What matters of a volume beside claims: kinds that Kubernetes has removed, which nobody simulates, and then others.
_OTHERS = ("gce_persistent_disk", "aws_elastic_block_store", "rbd", "iscsi", "image", "host_path", "empty_dir")
_SOURCES, _USED = attrgetter(*_OTHERS), attrgetter("persistent_volume_claim", "ephemeral", *_OTHERS)
_REMOVED = ("gcePersistentDisk", "awsElasticBlockStore", "rbd")


def claims(volumes: Iterable[PodVolumeWire] | None) -> tuple[str, ...]:
    """Return the names of the claims that volumes name."""
    return tuple([claim.claim_name for each in volumes or () if (claim := each.persistent_volume_claim)])


def own_claims(pod: str, volumes: Iterable[PodVolumeWire] | None) -> tuple[str, ...]:
    """Return the claims of generic ephemeral volumes, which are made for the pod and named after it."""
    return tuple([f"{pod}-{each.name}" for each in volumes or () if each.ephemeral])


class _ContainerWire(msgspec.Struct, gc=False, rename="camel"):
    image: str | None = None
    resources: msgspec.Raw = msgspec.Raw()
    ports: msgspec.Raw = msgspec.Raw()
    restart_policy: str | None = None


class SpecWire(msgspec.Struct, gc=False, rename="camel"):
    """The spec of a pod or of a template of pods, narrowed to what is used."""

    node_name: str | None = None
    containers: list[_ContainerWire] | None = None
    init_containers: list[_ContainerWire] | None = None
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

    def __post_init__(self) -> None:
        """Leave out volumes of which nothing is used: nearly every pod has one, with a token."""
        self.volumes = [each for each in self.volumes if any(_USED(each))] if self.volumes else None


class _ContainerParts(NamedTuple):
    image: str
    requests: Resources
    restartable: bool
    ports: bytes
    limits: Resources


class _Sources(NamedTuple):
    """What a spec's requests are made of."""

    containers: tuple[_ContainerParts, ...]
    init_containers: tuple[_ContainerParts, ...]
    pod_level: Resources
    overhead: Resources


#: What matters of a spec beside its volumes, as JSON.
_KEY = attrgetter(*(name for name in SpecWire.__struct_fields__ if name not in ("node_name", "volumes")))
_encoded = msgspec.json.Encoder().encode


class Specs:
    """Turns specs into the model; specs that are equal in what is used share one object."""

    def __init__(self) -> None:
        self._known: dict[bytes, PodSpec] = {}

    def of(self, spec: SpecWire) -> PodSpec:
        """Return the spec; one that cannot be understood in full carries its `problem` and is not to be trusted."""
        given = [found for each in spec.volumes if any(found := _SOURCES(each))] if spec.volumes else ()
        key = _encoded((*_KEY(spec), given))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _spec_or_problem(spec)
        return known


def _spec_or_problem(spec: SpecWire) -> PodSpec:
    told: dict[str, Any] = {
        "images": tuple(container.image or "" for container in spec.containers or ()),
        "priority": spec.priority,
        "priority_class": spec.priority_class_name or "",
        "local_storage": any(each.host_path or each.empty_dir for each in spec.volumes or ()),
        "resource_claims": bool(spec.resource_claims),
    }
    try:
        return PodSpec(**told, **_decoded(spec))
    except ValueError as error:
        return PodSpec(requests={}, problem=str(error), **told)


def _decoded(spec: SpecWire) -> dict[str, Any]:
    """Return the fields of a spec whose texts are decoded, each text once."""
    sources = _Sources(
        containers=tuple(map(_container, spec.containers or ())),
        init_containers=tuple(map(_container, spec.init_containers or ())),
        pod_level=_resources(bytes(spec.resources))[0],
        overhead=parse_resources(decode(bytes(spec.overhead), shared_fields.Quantities) or {}),
    )
    every = (*sources.containers, *sources.init_containers)
    affinity = decode_model(bytes(spec.affinity), shared_fields.AffinityWire) or shared_fields.AffinityWire()
    node = affinity.node_affinity or shared_fields.NodeAffinityWire()
    return {
        "requests": _requests(sources, {}),
        "requested": frozenset(name for each in every for name in each.requests),
        "node_selector": decode(bytes(spec.node_selector), dict[str, str]),
        "node_terms": node.required.terms if node.required else None,
        "preferred": node.preferred,
        "node_affinity": affinity.node_affinity is not None,
        "tolerations": decode_model(bytes(spec.tolerations), tuple[Toleration, ...]) or (),
        "anti_affinity": affinity.pod_anti_affinity.required,
        "spread": decode_model(bytes(spec.topology_spread_constraints), tuple[SpreadConstraint, ...]) or (),
        "qos": quality_of_service([(each.requests, each.limits) for each in every]),
        "placement": _placement(spec, sources, affinity),
    }


def _container(wire: _ContainerWire) -> _ContainerParts:
    requests, limits = _resources(bytes(wire.resources))
    restartable = wire.restart_policy == "Always"
    return _ContainerParts(wire.image or "", requests, restartable, bytes(wire.ports), limits)


@lru_cache(maxsize=512)
def _resources(raw: bytes) -> tuple[Resources, Resources]:
    wire = decode(raw, shared_fields.ResourcesWire) or shared_fields.ResourcesWire()
    return parse_resources(wire.requests or {}), parse_resources(wire.limits or {})


def quality_of_service(containers: Sequence[tuple[Resources, Resources]]) -> str:
    """Return BestEffort, Burstable or Guaranteed from requests and limits of cpu and memory; zero does not count."""
    pairs = [
        (requested.get(name, 0), limited.get(name, 0)) for requested, limited in containers for name in (CPU, MEMORY)
    ]
    if not any(request > 0 or limit > 0 for request, limit in pairs):
        return "BestEffort"
    return "Guaranteed" if all(request == limit > 0 for request, limit in pairs) else "Burstable"


class _Port(msgspec.Struct, gc=False, rename={"address": "hostIP", "port": "hostPort"}):
    port: int | None = None
    protocol: str | None = None
    address: str | None = None


def _placement(spec: SpecWire, sources: _Sources, affinity: shared_fields.AffinityWire) -> Placement:
    volumes = spec.volumes or ()
    sidecars = [each for each in sources.init_containers if each.restartable]
    return Placement(
        scheduler=spec.scheduler_name or "default-scheduler",
        assumed=_assumed_requests(sources),
        assumed_of_containers=_requests(sources._replace(pod_level={}), ASSUMED) if sources.pod_level else None,
        assumed_without_sidecars=_assumed_without_sidecars(sources) if sidecars else None,
        requests_of_containers=_of_containers(sources),
        images=tuple(_tagged(each.image) for each in sources.containers),
        init_images=tuple(_tagged(each.image) for each in sources.init_containers),
        volume_images=tuple(_tagged(each.image.reference or "") for each in volumes if each.image),
        host_ports=tuple(_host_ports(sources.containers)),
        sidecar_ports=tuple(_host_ports(sidecars)),
        affinity=affinity.pod_affinity.required,
        preferred_affinity=affinity.pod_affinity.preferred,
        preferred_anti_affinity=affinity.pod_anti_affinity.preferred,
        gated=bool(spec.scheduling_gates),
        preempts=spec.preemption_policy != "Never",
        cpus=tuple(ContainerCpu(each.limits.get(CPU), each.requests.get(CPU)) for each in sources.containers),
        overhead_cpu=sources.overhead.get(CPU, 0),
        disks=tuple(each.iscsi for each in volumes if each.iscsi),
        removed_volumes=tuple(
            kind for each in volumes for kind, given in zip(_REMOVED, _SOURCES(each), strict=False) if given
        ),
    )


def _assumed_requests(sources: _Sources) -> dict[str, int]:
    """Return the requests with the scheduler's assumed amounts; beside pod-level ones for what nothing else names."""
    missing = ASSUMED
    if any(name in sources.pod_level for name in ASSUMED):
        said = _requests(sources, {})
        missing = {name: amount for name, amount in ASSUMED.items() if name not in said}
    return _requests(sources, missing)


def _requests(sources: _Sources, missing: Resources) -> dict[str, int]:
    """Return the effective requests, with an amount for each resource that a container should name and does not."""
    return effective_requests(
        [{**missing, **each.requests} for each in sources.containers],
        [({**missing, **each.requests}, each.restartable) for each in sources.init_containers],
        sources.pod_level,
        sources.overhead,
    )


def _of_containers(sources: _Sources) -> dict[str, int] | None:
    """Return the requests with sidecars taken for other init containers and without pod-level requests, if any."""
    if not sources.pod_level and not any(each.restartable for each in sources.init_containers):
        return None
    ordinary = tuple(each._replace(restartable=False) for each in sources.init_containers)
    return _requests(sources._replace(pod_level={}, init_containers=ordinary), {})


def _tagged(image: str) -> str:
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def _assumed_without_sidecars(sources: _Sources) -> dict[str, int]:
    """Return the larger of what all containers have, and what sidecars have together or beside an init container."""
    sidecars: dict[str, int] = {}
    peaks = []
    for each in sources.init_containers:
        total = {name: each.requests.get(name, 0) + sidecars.get(name, 0) for name in {**each.requests, **sidecars}}
        if each.restartable:
            sidecars = total
        peaks.append({**ASSUMED, **total})
    containers = [{**ASSUMED, **each.requests} for each in sources.containers]
    most = {name: max(sum(each[name] for each in containers), *(peak[name] for peak in peaks)) for name in ASSUMED}
    return {name: amount + sources.overhead.get(name, 0) for name, amount in most.items()}


def _host_ports(containers: Iterable[_ContainerParts]) -> Iterator[HostPort]:
    for container in containers:
        for port in decode(container.ports, list[_Port]) or ():
            if port.port:
                yield HostPort(port.port, port.protocol or "TCP", port.address or "0.0.0.0")  # noqa: S104
