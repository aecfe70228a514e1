"""What ties pods to nodes through their volumes; immutable.

Source: the Kubernetes documentation (Persistent Volumes, Storage Classes, Node-specific Volume Limits, Storage
Capacity).
"""

from collections.abc import Mapping

import msgspec

from rebalancer.cluster.selectors import Labels, LabelSelector, NodeSelectorTerm

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
READ_WRITE_ONCE_POD = "ReadWriteOncePod"


class Claim(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A PersistentVolumeClaim.

    Attributes:
        storage_class: empty where it names none.
        volume: the volume it is bound to, empty before.
        bound: whether the binding is complete.
        requested: bytes.
        selected_node: the node for which its volume is being made.
        filesystem: whether it asks for a file system, not for a block device.
    """

    namespace: str
    name: str
    uid: str = ""
    storage_class: str = ""
    volume: str = ""
    bound: bool = False
    access_modes: frozenset[str] = frozenset()
    requested: int = 0
    selector: LabelSelector | None = None
    selected_node: str = ""
    filesystem: bool = True
    terminating: bool = False
    attributes_class: str = ""


class Volume(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A PersistentVolume.

    Attributes:
        node_terms: the nodes that reach it; None for all.
        claim: namespace, name and uid of the claim it is kept for; empty text where it does not say.
        phase: Available, Bound, Released or Failed.
        driver: the CSI driver; empty for another kind of volume.
        handle: the driver's name for it.
    """

    name: str
    labels: Labels = {}
    storage_class: str = ""
    capacity: int = 0
    access_modes: frozenset[str] = frozenset()
    node_terms: tuple[NodeSelectorTerm, ...] | None = None
    claim: tuple[str, str, str] | None = None
    phase: str = ""
    driver: str = ""
    handle: str = ""
    filesystem: bool = True
    terminating: bool = False
    attributes_class: str = ""


class StorageClass(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A StorageClass.

    Attributes:
        waits: whether volumes are bound and made only when a pod needs them.
        topologies: the nodes for which volumes can be made; empty for all.
    """

    name: str
    provisioner: str = ""
    waits: bool = False
    topologies: tuple[NodeSelectorTerm, ...] = ()
    default: bool = False


class CsiNode(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """How many volumes of each driver a node takes; None where the driver sets no limit."""

    name: str
    limits: Mapping[str, int | None] = {}
    migrated: frozenset[str] = frozenset()


class CsiDriver(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A CSIDriver.

    Attributes:
        capacity: whether the scheduler checks the storage capacity that it publishes.
        needed: whether pods with its volumes are kept from nodes without it.
    """

    name: str
    capacity: bool = False
    needed: bool = False


class StorageCapacity(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """How much room there is for volumes of a class on some nodes; None where that is not said."""

    storage_class: str
    nodes: LabelSelector | None = None
    capacity: int | None = None
    largest: int | None = None


class Attachment(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A volume that is attached to a node."""

    node: str
    driver: str = ""
    volume: str = ""
