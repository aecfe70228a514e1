"""What the scheduler reads besides nodes and pods; immutable.

Selectors of Services and controllers say which pods are spread by default.  Storage ties pods to nodes through their
volumes (the Kubernetes documentation: Persistent Volumes, Storage Classes, Node-specific Volume Limits, Storage
Capacity).
"""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from rebalancer.cluster.pod import PodSpec
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
    """A StorageClass; where it waits, volumes are bound and made only when a pod needs them.

    Volumes can be made for the nodes of these topologies; for all where there are none.
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
    """A CSIDriver: whether the scheduler checks the storage capacity that it publishes, and whether nodes need it.

    Pods with its volumes are kept from nodes without one that is needed.
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


#: Namespace and name.
Key = tuple[str, str]


class Notes(msgspec.Struct, frozen=True, gc=False):
    """What our annotations on a namespace or an owner say, not looked into: windows, a pause, and `restart`."""

    window: str = ""
    pause: str = ""
    restart: str = ""


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """What an owner makes its pods from, as the owner contains it.

    What the API server adds to every new pod is not in it: the priority as a number, requests from a LimitRange, the
    overhead of a RuntimeClass, containers from a webhook.

    Attributes:
        claims: claims that the template names itself, for all pods.
        makes_claims: whether it has generic ephemeral volumes, so that every pod gets claims of its own.
        changing: whether a rollout or a scaling down is under way, so that the next pod is not known.
        only_failed: whether a Job replaces a pod only after it has ended.
    """

    labels: Labels
    spec: PodSpec
    claims: tuple[str, ...] = ()
    makes_claims: bool = False
    changing: bool = False
    only_failed: bool = False


class SchedulerInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Objects by name, or by namespace and name; None stands for a kind that was not read.

    Attributes:
        services: selectors; None for a Service without one.
        replica_sets: selectors of ReplicaSets.
        replication_controllers: selectors of ReplicationControllers.
        stateful_sets: selectors of StatefulSets.
        templates: what owners make their pods from, by kind and uid of the owner.
        scaled: when a HorizontalPodAutoscaler last scaled, by namespace and `Kind/name` of its target.
        finishing: UIDs of Jobs whose last pods run.
        surging: Deployments of one replica, by namespace and `Kind/name`, whose rollout starts the second pod before it
            ends the first, and that are not in a rollout.
        notes: by namespace and `Kind/name`; the name is empty for the namespace itself.
    """

    services: Mapping[Key, LabelSelector | None] | None = None
    replica_sets: Mapping[Key, LabelSelector | None] | None = None
    replication_controllers: Mapping[Key, LabelSelector | None] | None = None
    stateful_sets: Mapping[Key, LabelSelector | None] | None = None
    claims: Mapping[Key, Claim] | None = None
    volumes: Mapping[str, Volume] | None = None
    storage_classes: Mapping[str, StorageClass] | None = None
    csi_nodes: Mapping[str, CsiNode] | None = None
    csi_drivers: Mapping[str, CsiDriver] | None = None
    storage_capacities: tuple[StorageCapacity, ...] | None = None
    attachments: tuple[Attachment, ...] | None = None
    templates: Mapping[tuple[str, str], Template] | None = None
    scaled: Mapping[Key, datetime] | None = None
    finishing: frozenset[str] = frozenset()
    surging: frozenset[Key] = frozenset()
    notes: Mapping[Key, Notes] = {}


NOTHING_READ = SchedulerInputs()
