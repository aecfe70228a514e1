"""What the scheduler reads beside nodes and pods, from the API server's JSON."""

from collections.abc import Callable, Hashable
from typing import Any

import msgspec

from rebalancer.cluster.companions import Companions
from rebalancer.cluster.selectors import EVERYTHING, LabelSelector
from rebalancer.wire import storage
from rebalancer.wire import storage_drivers as drivers
from rebalancer.wire.list_collector import Kind
from rebalancer.wire.parts import selector


class _Spec(msgspec.Struct):
    selector: dict[str, Any] | None = None


class _SelectingWire(msgspec.Struct):
    metadata: storage.Metadata = msgspec.field(default_factory=storage.Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)


_Selecting = tuple[tuple[str, str], LabelSelector | None]


def _by_labels(wire: _SelectingWire) -> _Selecting:
    """Return the key and the selector of a kind whose selector is a map of labels; an empty one is none."""
    found = EVERYTHING.narrowed({key: str(value) for key, value in (wire.spec.selector or {}).items()})
    return _key(wire), found or None


def _by_selector(wire: _SelectingWire) -> _Selecting:
    return _key(wire), selector(wire.spec.selector)


def _key(wire: _SelectingWire) -> tuple[str, str]:
    return wire.metadata.namespace or "default", wire.metadata.name


def _first(item: tuple[Hashable, object]) -> Hashable:
    return item[0]


def _itself(item: Hashable) -> Hashable:
    return item


#: The kinds; of a list the items are told apart as a whole.
KINDS: tuple[Kind[Any, Any], ...] = (
    Kind("Service", _SelectingWire, _by_labels, _first),
    Kind("ReplicationController", _SelectingWire, _by_labels, _first),
    Kind("ReplicaSet", _SelectingWire, _by_selector, _first),
    Kind("StatefulSet", _SelectingWire, _by_selector, _first),
    Kind("PersistentVolume", storage.VolumeWire, storage.volume, _first),
    Kind("StorageClass", drivers.StorageClassWire, drivers.storage_class, _first),
    Kind("CSINode", drivers.CsiNodeWire, drivers.csi_node, _first),
    Kind("CSIDriver", drivers.CsiDriverWire, drivers.csi_driver, _first),
    Kind("CSIStorageCapacity", drivers.StorageCapacityWire, drivers.storage_capacity, _itself),
    Kind("VolumeAttachment", drivers.AttachmentWire, drivers.attachment, _itself),
)


def companions(items: Callable[[str], tuple[Any, ...] | None]) -> Companions:
    """Return the objects.

    Args:
        items: tells what was read of a kind, None if it was not.
    """

    def mapped(kind: str) -> dict[Any, Any] | None:
        found = items(kind)
        return None if found is None else dict(found)

    return Companions(
        services=mapped("Service"),
        replica_sets=mapped("ReplicaSet"),
        replication_controllers=mapped("ReplicationController"),
        stateful_sets=mapped("StatefulSet"),
        claims=mapped("PersistentVolumeClaim"),
        volumes=mapped("PersistentVolume"),
        storage_classes=mapped("StorageClass"),
        csi_nodes=mapped("CSINode"),
        csi_drivers=mapped("CSIDriver"),
        storage_capacities=items("CSIStorageCapacity"),
        attachments=items("VolumeAttachment"),
    )
