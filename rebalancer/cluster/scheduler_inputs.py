"""What the scheduler reads besides nodes and pods; immutable.

Selectors of Services and controllers say which pods are spread by default; storage says where volumes are.
"""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from rebalancer.cluster.pod import PodSpec
from rebalancer.cluster.selectors import Labels, LabelSelector
from rebalancer.cluster.storage import (
    Attachment,
    Claim,
    CsiDriver,
    CsiNode,
    StorageCapacity,
    StorageClass,
    Volume,
)

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
        labels: the labels of the pods.
        spec: the spec of the pods.
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
