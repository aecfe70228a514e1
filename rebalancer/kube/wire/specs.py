"""The spec of a pod or of a template of pods as the API server writes it; equal ones are decoded once."""

import msgspec

from rebalancer.cluster.pod import PodSpec
from rebalancer.kube.wire import volumes
from rebalancer.kube.wire.intern import Interned
from rebalancer.kube.wire.objects import Int32
from rebalancer.kube.wire.podspec import ContainerKey, SpecKey, make_spec
from rebalancer.kube.wire.volumes import PodVolumeWire


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
    )


def _container_key(container: ContainerWire) -> ContainerKey:
    return ContainerKey(
        container.image or "", bytes(container.resources), container.restart_policy == "Always", bytes(container.ports)
    )
