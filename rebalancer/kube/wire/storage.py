"""Claims and volumes, from the API server's JSON."""

from typing import Any

import msgspec

from rebalancer.cluster.quantity import parse_quantity
from rebalancer.cluster.storage import Claim, Volume
from rebalancer.kube.wire.parts import NodeSelectorWire, Quantities, node_term, selector

_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
#: The annotations of a claim that are read.
ANNOTATIONS = (_SELECTED_NODE, _BIND_COMPLETED)


class StorageMetadata(msgspec.Struct, rename="camel"):
    """What is used of the metadata of claims and volumes."""

    name: str = ""
    namespace: str | None = None
    uid: str = ""
    labels: dict[str, str] | None = None
    deletion_timestamp: str | None = None


class AnnotatedMetadata(StorageMetadata):
    """The same, with annotations."""

    annotations: dict[str, str] | None = None


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


class ClaimWire(msgspec.Struct):
    """A PersistentVolumeClaim as the API server writes it."""

    metadata: AnnotatedMetadata = msgspec.field(default_factory=AnnotatedMetadata)
    spec: _ClaimSpec = msgspec.field(default_factory=_ClaimSpec)


def claim(wire: ClaimWire) -> tuple[tuple[str, str], Claim]:
    """Return namespace and name, and the claim.

    Raises:
        ValueError: its selector or its size cannot be read.
    """
    namespace, name, spec = wire.metadata.namespace or "default", wire.metadata.name, wire.spec
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
    node_affinity: _VolumeAffinity | None = None
    claim_ref: _ClaimReference | None = None
    csi: _Csi | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class _VolumeStatus(msgspec.Struct):
    phase: str | None = None


class VolumeWire(msgspec.Struct):
    """A PersistentVolume as the API server writes it."""

    metadata: StorageMetadata = msgspec.field(default_factory=StorageMetadata)
    spec: _VolumeSpec = msgspec.field(default_factory=_VolumeSpec)
    status: _VolumeStatus | None = None


def volume(wire: VolumeWire) -> tuple[str, Volume]:
    """Return name and volume.

    Raises:
        ValueError: its size cannot be read.
    """
    spec, reference = wire.spec, wire.spec.claim_ref
    required = spec.node_affinity and spec.node_affinity.required
    csi = spec.csi or _Csi()
    return wire.metadata.name, Volume(
        name=wire.metadata.name,
        labels=wire.metadata.labels or {},
        storage_class=spec.storage_class_name or "",
        capacity=parse_quantity((spec.capacity or {}).get("storage", 0)),
        access_modes=frozenset(spec.access_modes or ()),
        node_terms=tuple(map(node_term, required.node_selector_terms or ())) if required else None,
        claim=(reference.namespace, reference.name, reference.uid) if reference else None,
        phase=(wire.status and wire.status.phase) or "",
        driver=csi.driver,
        handle=csi.volume_handle,
        filesystem=spec.volume_mode != "Block",
        terminating=wire.metadata.deletion_timestamp is not None,
        attributes_class=spec.volume_attributes_class_name or "",
    )
