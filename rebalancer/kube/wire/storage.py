"""Claims, volumes and storage classes, and what nodes and drivers say of volumes, from the API server's JSON."""

from operator import itemgetter
from typing import Any

import msgspec

from rebalancer.cluster.resources import parse_quantity
from rebalancer.cluster.scheduler_inputs import (
    WAIT_FOR_FIRST_CONSUMER,
    Attachment,
    Claim,
    CsiDriver,
    CsiNode,
    StorageCapacity,
    StorageClass,
    Volume,
)
from rebalancer.cluster.selectors import NodeSelectorTerm, Requirement
from rebalancer.kube.wire.pages import SPOILT, Kind, itself
from rebalancer.kube.wire.shared_fields import (
    AnnotatedMetadata,
    Metadata,
    NodeSelectorWire,
    Quantities,
    decode_model,
    selector,
)

_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
#: The annotations of a claim that are read.
ANNOTATIONS = (_SELECTED_NODE, _BIND_COMPLETED)
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


def _claim(wire: _ClaimWire) -> tuple[tuple[str, str], Claim]:
    (namespace, name), spec = wire.metadata.key, wire.spec
    annotations = wire.metadata.annotations or {}
    requests = (spec.resources and spec.resources.requests) or {}
    return (namespace, name), Claim(
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


def _volume(wire: _VolumeWire) -> tuple[str, Volume]:
    spec, reference = wire.spec, wire.spec.claim_ref
    required = (decode_model(bytes(spec.node_affinity), _VolumeAffinity) or _VolumeAffinity()).required
    csi = spec.csi or _Csi()
    return wire.metadata.name, Volume(
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


def _storage_class(wire: _StorageClassWire) -> tuple[str, StorageClass]:
    return wire.metadata.name, StorageClass(
        name=wire.metadata.name,
        provisioner=wire.provisioner,
        waits=wire.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER,
        topologies=tuple(map(_topology, wire.allowed_topologies or ())),
        default=(wire.metadata.annotations or {}).get(DEFAULT_CLASS) == "true",
    )


def _topology(wire: _Topology) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        tuple(Requirement(each.key, "In", tuple(each.values or ())) for each in wire.match_label_expressions or ())
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


def _csi_node(wire: _CsiNodeWire) -> tuple[str, CsiNode]:
    migrated = (wire.metadata.annotations or {}).get(MIGRATED, "")
    return wire.metadata.name, CsiNode(
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


def _csi_driver(wire: _CsiDriverWire) -> tuple[str, CsiDriver]:
    return wire.metadata.name, CsiDriver(
        name=wire.metadata.name,
        capacity=bool(wire.spec.storage_capacity),
        needed=bool(wire.spec.prevent_pod_scheduling_if_missing),
    )


class _StorageCapacityWire(msgspec.Struct, rename="camel"):
    storage_class_name: str = ""
    node_topology: dict[str, Any] | None = None
    capacity: str | None = None
    maximum_volume_size: str | None = None


def _storage_capacity(wire: _StorageCapacityWire) -> StorageCapacity:
    return StorageCapacity(
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


def _attachment(wire: _AttachmentWire) -> Attachment:
    spec = wire.spec
    return Attachment(node=spec.node_name, driver=spec.attacher, volume=spec.source.persistent_volume_name or "")


_FIRST = itemgetter(0)
#: Objects whose name is not read are compared as a whole.
KINDS: tuple[Kind[Any, Any], ...] = (
    Kind("PersistentVolumeClaim", _ClaimWire, _claim, _FIRST, otherwise="its storage class counts as unknown"),
    Kind("PersistentVolume", _VolumeWire, _volume, _FIRST, otherwise=SPOILT),
    Kind("StorageClass", _StorageClassWire, _storage_class, _FIRST, otherwise=SPOILT),
    Kind("CSINode", _CsiNodeWire, _csi_node, _FIRST, otherwise=SPOILT),
    Kind("CSIDriver", _CsiDriverWire, _csi_driver, _FIRST, otherwise=SPOILT),
    Kind("CSIStorageCapacity", _StorageCapacityWire, _storage_capacity, itself, otherwise=SPOILT),
    Kind("VolumeAttachment", _AttachmentWire, _attachment, itself, otherwise=SPOILT),
)
