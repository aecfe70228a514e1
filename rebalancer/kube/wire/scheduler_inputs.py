"""What the scheduler reads beside nodes and pods, from the API server's JSON."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any

import msgspec

from rebalancer.cluster import scheduler_inputs as model
from rebalancer.cluster.resources import parse_quantity
from rebalancer.cluster.scheduler_inputs import Notes, SchedulerInputs, Template
from rebalancer.cluster.selectors import LabelSelector, NodeSelectorTerm, Requirement
from rebalancer.kube.wire import workloads as work
from rebalancer.kube.wire.objects import aware
from rebalancer.kube.wire.pages import SPOILT, Kind
from rebalancer.kube.wire.shared_fields import (
    AnnotatedMetadata,
    Metadata,
    NodeSelectorWire,
    Quantities,
    SelectingWire,
    decode_model,
    selector,
)

_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
ANNOTATIONS = (_SELECTED_NODE, _BIND_COMPLETED)  # the annotations of a claim that are read
#: The annotations of a StorageClass and a CSINode that are read.
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"


class _ClaimResources(msgspec.Struct):
    requests: Quantities | None = None


class _ClaimSpec(msgspec.Struct, rename="camel"):
    storage_class_name: str | None = None
    volume_name: str | None = None
    access_modes: list[str] | None = None
    resources: _ClaimResources | None = None
    selector: dict[str, Any] | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class _ClaimWire(msgspec.Struct):
    metadata: AnnotatedMetadata = msgspec.field(default_factory=AnnotatedMetadata)
    spec: _ClaimSpec = msgspec.field(default_factory=_ClaimSpec)


def _claim(wire: _ClaimWire) -> tuple[tuple[str, str], model.Claim]:
    (namespace, name), spec = wire.metadata.key, wire.spec
    annotations = wire.metadata.annotations or {}
    requests = (spec.resources and spec.resources.requests) or {}
    return (namespace, name), model.Claim(
        namespace=namespace,
        name=name,
        uid=wire.metadata.uid,
        storage_class=spec.storage_class_name or "",
        volume=spec.volume_name or "",
        bound=bool(spec.volume_name) and _BIND_COMPLETED in annotations,
        access_modes=frozenset(spec.access_modes or ()),
        requested=parse_quantity(requests.get("storage", 0)),
        selector=selector(spec.selector),
        selected_node=annotations.get(_SELECTED_NODE, ""),
        filesystem=spec.volume_mode != "Block",
        terminating=wire.metadata.deletion_timestamp is not None,
        attributes_class=spec.volume_attributes_class_name or "",
    )


class _ClaimReference(msgspec.Struct):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _VolumeAffinity(msgspec.Struct):
    required: NodeSelectorWire | None = None


class _Csi(msgspec.Struct, rename="camel"):
    driver: str = ""
    volume_handle: str = ""


class _VolumeSpec(msgspec.Struct, rename="camel"):
    storage_class_name: str | None = None
    capacity: Quantities | None = None
    access_modes: list[str] | None = None
    node_affinity: msgspec.Raw = msgspec.Raw()
    claim_ref: _ClaimReference | None = None
    csi: _Csi | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class _VolumeStatus(msgspec.Struct):
    phase: str | None = None


class _VolumeWire(msgspec.Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: _VolumeSpec = msgspec.field(default_factory=_VolumeSpec)
    status: _VolumeStatus | None = None


def _volume(wire: _VolumeWire) -> tuple[str, model.Volume]:
    spec, reference = wire.spec, wire.spec.claim_ref
    required = (decode_model(bytes(spec.node_affinity), _VolumeAffinity) or _VolumeAffinity()).required
    csi = spec.csi or _Csi()
    return wire.metadata.name, model.Volume(
        name=wire.metadata.name,
        labels=wire.metadata.labels or {},
        storage_class=spec.storage_class_name or "",
        capacity=parse_quantity((spec.capacity or {}).get("storage", 0)),
        access_modes=frozenset(spec.access_modes or ()),
        node_terms=required.terms if required else None,
        claim=(reference.namespace, reference.name, reference.uid) if reference else None,
        phase=(wire.status and wire.status.phase) or "",
        driver=csi.driver,
        handle=csi.volume_handle,
        filesystem=spec.volume_mode != "Block",
        terminating=wire.metadata.deletion_timestamp is not None,
        attributes_class=spec.volume_attributes_class_name or "",
    )


class _TopologyRequirement(msgspec.Struct):
    key: str = ""
    values: list[str] | None = None


class _Topology(msgspec.Struct, rename="camel"):
    match_label_expressions: list[_TopologyRequirement] | None = None


class _StorageClassWire(msgspec.Struct, rename="camel"):
    metadata: AnnotatedMetadata = msgspec.field(default_factory=AnnotatedMetadata)
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[_Topology] | None = None


def _storage_class(wire: _StorageClassWire) -> tuple[str, model.StorageClass]:
    topologies = (
        tuple(Requirement(each.key, "In", tuple(each.values or ())) for each in topology.match_label_expressions or ())
        for topology in wire.allowed_topologies or ()
    )
    return wire.metadata.name, model.StorageClass(
        name=wire.metadata.name,
        provisioner=wire.provisioner,
        waits=wire.volume_binding_mode == model.WAIT_FOR_FIRST_CONSUMER,
        topologies=tuple(map(NodeSelectorTerm, topologies)),
        default=(wire.metadata.annotations or {}).get(DEFAULT_CLASS) == "true",
    )


class _Allocatable(msgspec.Struct):
    count: int | None = None


class _NodeDriver(msgspec.Struct):
    name: str = ""
    allocatable: _Allocatable | None = None


class _CsiNodeSpec(msgspec.Struct):
    drivers: list[_NodeDriver] | None = None


class _CsiNodeWire(msgspec.Struct):
    metadata: AnnotatedMetadata = msgspec.field(default_factory=AnnotatedMetadata)
    spec: _CsiNodeSpec = msgspec.field(default_factory=_CsiNodeSpec)


def _csi_node(wire: _CsiNodeWire) -> tuple[str, model.CsiNode]:
    migrated = (wire.metadata.annotations or {}).get(MIGRATED, "")
    return wire.metadata.name, model.CsiNode(
        name=wire.metadata.name,
        limits={each.name: each.allocatable.count if each.allocatable else None for each in wire.spec.drivers or ()},
        migrated=frozenset(filter(None, migrated.split(","))),
    )


class _CsiDriverSpec(msgspec.Struct, rename="camel"):
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class _CsiDriverWire(msgspec.Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: _CsiDriverSpec = msgspec.field(default_factory=_CsiDriverSpec)


def _csi_driver(wire: _CsiDriverWire) -> tuple[str, model.CsiDriver]:
    return wire.metadata.name, model.CsiDriver(
        name=wire.metadata.name,
        capacity=bool(wire.spec.storage_capacity),
        needed=bool(wire.spec.prevent_pod_scheduling_if_missing),
    )


class _StorageCapacityWire(msgspec.Struct, rename="camel"):
    storage_class_name: str = ""
    node_topology: dict[str, Any] | None = None
    capacity: str | None = None
    maximum_volume_size: str | None = None


def _storage_capacity(wire: _StorageCapacityWire) -> model.StorageCapacity:
    return model.StorageCapacity(
        storage_class=wire.storage_class_name,
        nodes=selector(wire.node_topology),
        capacity=None if wire.capacity is None else parse_quantity(wire.capacity),
        largest=None if wire.maximum_volume_size is None else parse_quantity(wire.maximum_volume_size),
    )


class _AttachmentSource(msgspec.Struct, rename="camel"):
    persistent_volume_name: str | None = None


class _AttachmentSpec(msgspec.Struct, rename="camel"):
    attacher: str = ""
    node_name: str = ""
    source: _AttachmentSource = msgspec.field(default_factory=_AttachmentSource)


class _AttachmentWire(msgspec.Struct):
    spec: _AttachmentSpec = msgspec.field(default_factory=_AttachmentSpec)


def _attachment(wire: _AttachmentWire) -> model.Attachment:
    spec = wire.spec
    return model.Attachment(node=spec.node_name, driver=spec.attacher, volume=spec.source.persistent_volume_name or "")


_FIRST, _ITSELF = itemgetter(0), lambda item: item


OWNERS = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "Job")  # owners whose annotations count

#: The kinds that decide where the scheduler would put pods, beside nodes and pods.
SCHEDULER_KINDS = frozenset(
    (
        *(*OWNERS, "Service", "Namespace", "PersistentVolumeClaim", "PersistentVolume", "StorageClass"),
        *("CSINode", "CSIDriver", "CSIStorageCapacity", "VolumeAttachment"),
    )
)

#: The kinds that say whether an owner is left alone, beside pods and nodes.
TRUST_KINDS = frozenset((*OWNERS, "HorizontalPodAutoscaler", "Namespace"))
Items = Callable[[str], tuple[Any, ...] | None]  # returns the objects of a kind; None if the kind was not read
#: Workloads that no controller replaces by new ones, as a Deployment does with its ReplicaSets.
_LASTING = ("StatefulSet", "Job")


class _ScaleTarget(msgspec.Struct):
    kind: str = ""
    name: str = ""


class _AutoscalerSpec(msgspec.Struct, rename="camel"):
    scale_target_ref: _ScaleTarget = msgspec.field(default_factory=_ScaleTarget)


class _AutoscalerStatus(msgspec.Struct, rename="camel"):
    last_scale_time: datetime | None = None


class _AutoscalerWire(msgspec.Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: _AutoscalerSpec = msgspec.field(default_factory=_AutoscalerSpec)
    status: _AutoscalerStatus = msgspec.field(default_factory=_AutoscalerStatus)


def _autoscaler(wire: _AutoscalerWire) -> tuple[tuple[str, str], datetime | None]:
    target = wire.spec.scale_target_ref
    return (wire.metadata.key[0], f"{target.kind}/{target.name}"), aware(wire.status.last_scale_time)


class _ServiceWire(msgspec.Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: SelectingWire = msgspec.field(default_factory=SelectingWire)


def _service(wire: _ServiceWire) -> tuple[tuple[str, str], LabelSelector | None]:
    return wire.metadata.key, work.by_labels(wire.spec.selector)


#: Objects whose name is not read are compared as a whole.
KINDS: tuple[Kind[Any, Any], ...] = (
    Kind("PersistentVolumeClaim", _ClaimWire, _claim, _FIRST, otherwise="its storage class counts as unknown"),
    Kind("PersistentVolume", _VolumeWire, _volume, _FIRST, otherwise=SPOILT),
    Kind("StorageClass", _StorageClassWire, _storage_class, _FIRST, otherwise=SPOILT),
    Kind("CSINode", _CsiNodeWire, _csi_node, _FIRST, otherwise=SPOILT),
    Kind("CSIDriver", _CsiDriverWire, _csi_driver, _FIRST, otherwise=SPOILT),
    Kind("CSIStorageCapacity", _StorageCapacityWire, _storage_capacity, _ITSELF, otherwise=SPOILT),
    Kind("VolumeAttachment", _AttachmentWire, _attachment, _ITSELF, otherwise=SPOILT),
    Kind("HorizontalPodAutoscaler", _AutoscalerWire, _autoscaler, _ITSELF, otherwise="what it scales is unknown"),
    Kind("Service", _ServiceWire, _service, _FIRST, otherwise=SPOILT),
)


def scheduler_inputs(items: Items, whole: Items) -> SchedulerInputs:
    """Return the objects: `whole` has those of a kind, but None also if one of them could not be read."""

    def mapped(kind: str) -> dict[Any, Any] | None:
        found = whole(kind)
        return None if found is None else dict(found)

    def selectors(kind: str) -> dict[tuple[str, str], LabelSelector | None] | None:
        found = whole(kind)
        return None if found is None else {each.key: each.selector for each in found}

    return SchedulerInputs(
        services=mapped("Service"),
        replica_sets=selectors("ReplicaSet"),
        replication_controllers=selectors("ReplicationController"),
        stateful_sets=selectors("StatefulSet"),
        claims=mapped("PersistentVolumeClaim"),
        volumes=mapped("PersistentVolume"),
        storage_classes=mapped("StorageClass"),
        csi_nodes=mapped("CSINode"),
        csi_drivers=mapped("CSIDriver"),
        storage_capacities=whole("CSIStorageCapacity"),
        attachments=whole("VolumeAttachment"),
        templates=_templates(items),
        scaled=_scaled(items("HorizontalPodAutoscaler")),
        finishing=frozenset(each.uid for each in items("Job") or () if each.finishing),
        surging=frozenset(
            (each.key[0], f"Deployment/{each.key[1]}") for each in items("Deployment") or () if each.surges
        ),
        notes=_notes(items),
    )


def _scaled(autoscalers: tuple[Any, ...] | None) -> dict[tuple[str, str], datetime] | None:
    """Return when each target was last scaled: two autoscalers of one target are an error, and both count."""
    if autoscalers is None:
        return None
    found: dict[tuple[str, str], datetime] = {}
    for target, time in autoscalers:
        if time is not None:
            found[target] = max(time, found.get(target, time))
    return found


def _notes(items: Items) -> dict[tuple[str, str], Notes]:
    found = {(each[0], ""): each[2] for each in items("Namespace") or () if each[2]}
    for kind in OWNERS:
        found |= {(each.key[0], f"{kind}/{each.key[1]}"): each.notes for each in items(kind) or () if each.notes}
    return found


def _templates(items: Items) -> dict[tuple[str, str], Template] | None:
    found = {kind: items(kind) for kind in ("ReplicaSet", "ReplicationController", "StatefulSet", "Job")}
    if all(workloads is None for workloads in found.values()):
        return None
    deployments = {each.uid: each.changing for each in items("Deployment") or ()}
    return {
        (kind, each.uid): each.template
        for kind, workloads in found.items()
        for each in (workloads if kind in _LASTING else _settled(workloads or (), deployments)) or ()
        if each.uid and each.template
    }


def _settled(replica_sets: Sequence[work.PodMaker], deployments: Mapping[str, bool]) -> Iterator[work.PodMaker]:
    """Yield ReplicaSets, marked as changing if their owner may be about to replace them.

    Those of a Deployment that was not read are left out, since nothing is known of them.  Owners of other kinds are not
    read; they count as changing while two or more of their ReplicaSets have or want pods.
    """
    active = Counter(each.owner.uid for each in replica_sets if each.owner and each.template)
    for each in replica_sets:
        owner, template, changing = each.owner, each.template, False
        if owner and owner.kind == "Deployment" and owner.uid not in deployments:
            continue
        if owner:
            changing = deployments[owner.uid] if owner.kind == "Deployment" else active[owner.uid] > 1
        if changing and template:
            template = msgspec.structs.replace(template, changing=True)
        yield each if template is each.template else msgspec.structs.replace(each, template=template)
