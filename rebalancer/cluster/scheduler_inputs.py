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
    """A PersistentVolumeClaim."""

    namespace: str
    name: str
    uid: str = ""
    storage_class: str = ""  # empty where it names none
    volume: str = ""  # the volume it is bound to, empty before
    bound: bool = False  # whether the binding is complete
    access_modes: frozenset[str] = frozenset()
    requested: int = 0  # bytes
    selector: LabelSelector | None = None
    selected_node: str = ""  # the node for which its volume is being made
    filesystem: bool = True  # whether it asks for a file system, not for a block device
    terminating: bool = False
    attributes_class: str = ""


class Volume(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A PersistentVolume."""

    name: str
    labels: Labels = {}
    storage_class: str = ""
    capacity: int = 0
    access_modes: frozenset[str] = frozenset()
    node_terms: tuple[NodeSelectorTerm, ...] | None = None  # the nodes that reach it; None for all
    claim: tuple[str, str, str] | None = None  # namespace, name and uid of the claim it is kept for; empty if not said
    phase: str = ""  # Available, Bound, Released or Failed
    driver: str = ""  # the CSI driver; empty for another kind of volume
    handle: str = ""  # the driver's name for it
    filesystem: bool = True
    terminating: bool = False
    attributes_class: str = ""


class StorageClass(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A StorageClass; where it waits, volumes are made only when a pod needs them; for all nodes without topologies."""

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
    """A CSIDriver: whether its storage capacity is checked, and whether pods with its volumes need nodes with it."""

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
    """

    labels: Labels
    spec: PodSpec
    claims: tuple[str, ...] = ()  # claims that the template names itself, for all pods
    makes_claims: bool = False  # whether it has generic ephemeral volumes, so that every pod gets claims of its own
    changing: bool = False  # whether a rollout or a scaling down is under way, so that the next pod is not known
    only_failed: bool = False  # whether a Job replaces a pod only after it has ended


class SchedulerInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Objects by name, or by namespace and name; None stands for a kind that was not read."""

    services: Mapping[Key, LabelSelector | None] | None = None  # selectors; None for a Service without one
    replica_sets: Mapping[Key, LabelSelector | None] | None = None  # selectors of ReplicaSets
    replication_controllers: Mapping[Key, LabelSelector | None] | None = None  # selectors of ReplicationControllers
    stateful_sets: Mapping[Key, LabelSelector | None] | None = None  # selectors of StatefulSets
    claims: Mapping[Key, Claim] | None = None
    volumes: Mapping[str, Volume] | None = None
    storage_classes: Mapping[str, StorageClass] | None = None
    csi_nodes: Mapping[str, CsiNode] | None = None
    csi_drivers: Mapping[str, CsiDriver] | None = None
    storage_capacities: tuple[StorageCapacity, ...] | None = None
    attachments: tuple[Attachment, ...] | None = None
    templates: Mapping[tuple[str, str], Template] | None = None  # what owners make pods from, by kind and uid of owner
    scaled: Mapping[Key, datetime] | None = None  # when autoscaled last, by namespace and `Kind/name` of the target
    finishing: frozenset[str] = frozenset()  # UIDs of Jobs whose last pods run
    #: Deployments of one replica, by namespace and `Kind/name`, whose rollout starts the second pod before it ends the
    #: first, and that are not in a rollout.
    surging: frozenset[Key] = frozenset()
    notes: Mapping[Key, Notes] = {}  # by namespace and `Kind/name`; the name is empty for the namespace itself


NOTHING_READ = SchedulerInputs()
