"""What the scheduler reads of a pod beside its requests, from the API server's JSON."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from rebalancer.cluster.placement import ASSUMED, ContainerCpu, HostPort, IscsiDisk, Placement, WeightedPodTerm
from rebalancer.cluster.resources import CPU, Resources, effective_requests
from rebalancer.kube.wire import parts
from rebalancer.kube.wire.parts import decode
from rebalancer.kube.wire.volumes import OfSpec


class ContainerSource(NamedTuple):
    """One container: its image, requests and ports."""

    image: str
    requests: Resources
    restartable: bool
    ports: bytes
    limits: Resources


class Sources(NamedTuple):
    """The parts of a spec that a placement is made of."""

    containers: tuple[ContainerSource, ...]
    init_containers: tuple[ContainerSource, ...]
    pod_level: Resources
    overhead: Resources
    affinity: parts.AffinityWire
    scheduler: str
    gated: bool
    preemption: str
    volumes: OfSpec


class _Port(msgspec.Struct, gc=False, rename={"address": "hostIP", "port": "hostPort"}):
    port: int | None = None
    protocol: str | None = None
    address: str | None = None


def placement(sources: Sources) -> Placement:
    """Return what the scheduler reads.

    Raises:
        ValueError: a selector cannot be read.
    """
    near = sources.affinity.pod_affinity or parts.PodTermsWire()
    apart = sources.affinity.pod_anti_affinity or parts.PodTermsWire()
    sidecars = [each for each in sources.init_containers if each.restartable]
    return Placement(
        scheduler=sources.scheduler or "default-scheduler",
        assumed=assumed_requests(sources),
        assumed_of_containers=requests(sources._replace(pod_level={}), ASSUMED) if sources.pod_level else None,
        assumed_without_sidecars=_assumed_without_sidecars(sources) if sidecars else None,
        requests_of_containers=_of_containers(sources),
        images=tuple(tagged(each.image) for each in sources.containers),
        init_images=tuple(tagged(each.image) for each in sources.init_containers),
        volume_images=tuple(map(tagged, sources.volumes.images)),
        host_ports=tuple(_host_ports(sources.containers)),
        sidecar_ports=tuple(_host_ports(sidecars)),
        affinity=tuple(parts.anti_affinity_term(each) for each in near.required or ()),
        preferred_affinity=tuple(_weighted(near.preferred or ())),
        preferred_anti_affinity=tuple(_weighted(apart.preferred or ())),
        gated=sources.gated,
        preempts=sources.preemption != "Never",
        cpus=tuple(ContainerCpu(each.limits.get(CPU), each.requests.get(CPU)) for each in sources.containers),
        overhead_cpu=sources.overhead.get(CPU, 0),
        disks=tuple(_disk(raw) for raw in sources.volumes.disks),
        removed_volumes=sources.volumes.removed,
    )


def assumed_requests(sources: Sources) -> dict[str, int]:
    """Return the requests; a container that requests no cpu or memory counts with the scheduler's assumed amount.

    Source: the scheduler's documentation of scores for pods without requests.  If the pod has pod-level
    requests for cpu or memory, an amount is assumed only for what neither the pod nor any container requests.
    """
    missing = ASSUMED
    if any(name in sources.pod_level for name in ASSUMED):
        said = requests(sources, {})
        missing = {name: amount for name, amount in ASSUMED.items() if name not in said}
    return requests(sources, missing)


def requests(sources: Sources, missing: Resources) -> dict[str, int]:
    """Return the effective requests, with an amount for each resource that a container should name and does not."""
    return effective_requests(
        [{**missing, **each.requests} for each in sources.containers],
        [({**missing, **each.requests}, each.restartable) for each in sources.init_containers],
        sources.pod_level,
        sources.overhead,
    )


def _of_containers(sources: Sources) -> dict[str, int] | None:
    """Return the requests with sidecars taken for other init containers and without pod-level requests, if any."""
    if not sources.pod_level and not any(each.restartable for each in sources.init_containers):
        return None
    ordinary = tuple(each._replace(restartable=False) for each in sources.init_containers)
    return requests(sources._replace(pod_level={}, init_containers=ordinary), {})


def tagged(image: str) -> str:
    """Return an image's name as nodes report it: with the tag `latest` where it names none."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def _assumed_without_sidecars(sources: Sources) -> dict[str, int]:
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


def _host_ports(containers: Iterable[ContainerSource]) -> Iterator[HostPort]:
    for container in containers:
        for port in decode(container.ports, list[_Port]) or ():
            if port.port:
                yield HostPort(port.port, port.protocol or "TCP", port.address or "0.0.0.0")  # noqa: S104


def _weighted(terms: Iterable[parts.WeightedTermWire]) -> Iterator[WeightedPodTerm]:
    return (WeightedPodTerm(each.weight, parts.anti_affinity_term(each.pod_affinity_term)) for each in terms)


class _IscsiWire(msgspec.Struct, gc=False, rename="camel"):
    iqn: str = ""
    read_only: bool = False


def _disk(raw: bytes) -> IscsiDisk:
    wire = decode(raw, _IscsiWire) or _IscsiWire()
    return IscsiDisk(wire.iqn, wire.read_only)
