"""What the scheduler reads beside nodes and pods, from the API server's JSON."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any

import msgspec

from rebalancer.cluster import scheduler_inputs as model
from rebalancer.cluster.resources import parse_quantity
from rebalancer.cluster.scheduler_inputs import Notes, SchedulerInputs, Template
from rebalancer.cluster.selectors import NodeSelectorTerm, Requirement, parse_label_selector
from rebalancer.kube.wire import workloads as work
from rebalancer.kube.wire.fields import LABELS, NAME, NAMESPACE, TERMINATING, At, Reader
from rebalancer.kube.wire.objects import aware
from rebalancer.kube.wire.pages import SPOILT, Kind
from rebalancer.kube.wire.shared_fields import NodeSelectorWire, Quantities, as_model

_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
ANNOTATIONS = (_SELECTED_NODE, _BIND_COMPLETED)  # the annotations of a claim that are read
#: The annotations of a StorageClass and a CSINode that are read.
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"


_ANNOTATIONS = dict[str, str]
_SELECTOR, _ATTRIBUTES_CLASS = dict[str, Any], At("spec.volumeAttributesClassName")
_FILESYSTEM = At("spec.volumeMode", str, lambda mode: mode != "Block")


def _storage(amounts: Mapping[str, str | float]) -> int:
    return parse_quantity(amounts.get("storage", 0))


def _claim(*, volume: str = "", bound: bool = False, **fields: Any) -> model.Claim:
    return model.Claim(volume=volume, bound=bool(volume) and bound, **fields)


_CLAIM = Reader(
    _claim,
    namespace=NAMESPACE,
    name=NAME,
    uid=At("metadata.uid"),
    storage_class=At("spec.storageClassName"),
    volume=At("spec.volumeName"),
    bound=At("metadata.annotations", _ANNOTATIONS, lambda found: _BIND_COMPLETED in found),
    access_modes=At("spec.accessModes", frozenset[str]),
    requested=At("spec.resources.requests", Quantities, _storage),
    selector=At("spec.selector", _SELECTOR, parse_label_selector),
    selected_node=At("metadata.annotations", _ANNOTATIONS, lambda found: found.get(_SELECTED_NODE, "")),
    filesystem=_FILESYSTEM,
    terminating=TERMINATING,
    attributes_class=_ATTRIBUTES_CLASS,
)


class _ClaimReference(msgspec.Struct):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _VolumeAffinity(msgspec.Struct):
    required: NodeSelectorWire | None = None


def _terms(affinity: object) -> tuple[NodeSelectorTerm, ...] | None:
    required = as_model(affinity, _VolumeAffinity).required
    return required.terms if required else None


_VOLUME = Reader(
    model.Volume,
    name=NAME,
    labels=LABELS,
    storage_class=At("spec.storageClassName"),
    capacity=At("spec.capacity", Quantities, _storage),
    access_modes=At("spec.accessModes", frozenset[str]),
    node_terms=At("spec.nodeAffinity", _SELECTOR, _terms),
    claim=At("spec.claimRef", _ClaimReference, msgspec.structs.astuple),
    phase=At("status.phase"),
    driver=At("spec.csi.driver"),
    handle=At("spec.csi.volumeHandle"),
    filesystem=_FILESYSTEM,
    terminating=TERMINATING,
    attributes_class=_ATTRIBUTES_CLASS,
)


class _TopologyRequirement(msgspec.Struct):
    key: str = ""
    values: tuple[str, ...] | None = None


class _Topology(msgspec.Struct, rename="camel"):
    match_label_expressions: list[_TopologyRequirement] | None = None


def _term(topology: _Topology) -> NodeSelectorTerm:
    asked = topology.match_label_expressions or ()
    return NodeSelectorTerm(tuple(Requirement(each.key, "In", each.values or ()) for each in asked))


_STORAGE_CLASS = Reader(
    model.StorageClass,
    name=NAME,
    provisioner=At("provisioner"),
    waits=At("volumeBindingMode", str, lambda mode: mode == model.WAIT_FOR_FIRST_CONSUMER),
    topologies=At("allowedTopologies", list[_Topology], lambda found: tuple(map(_term, found))),
    default=At("metadata.annotations", _ANNOTATIONS, lambda found: found.get(DEFAULT_CLASS) == "true"),
)


class _Allocatable(msgspec.Struct):
    count: int | None = None


class _NodeDriver(msgspec.Struct):
    name: str = ""
    allocatable: _Allocatable | None = None


_CSI_NODE = Reader(
    model.CsiNode,
    name=NAME,
    limits=At(
        "spec.drivers",
        list[_NodeDriver],
        lambda drivers: {each.name: each.allocatable.count if each.allocatable else None for each in drivers},
    ),
    migrated=At(
        "metadata.annotations", _ANNOTATIONS, lambda found: frozenset(filter(None, found.get(MIGRATED, "").split(",")))
    ),
)
_CSI_DRIVER = Reader(
    model.CsiDriver,
    name=NAME,
    capacity=At("spec.storageCapacity", bool),
    needed=At("spec.preventPodSchedulingIfMissing", bool),
)
_STORAGE_CAPACITY = Reader(
    model.StorageCapacity,
    storage_class=At("storageClassName", absent=""),
    nodes=At("nodeTopology", _SELECTOR, parse_label_selector),
    capacity=At("capacity", str, parse_quantity),
    largest=At("maximumVolumeSize", str, parse_quantity),
)
_ATTACHMENT = Reader(
    model.Attachment,
    node=At("spec.nodeName", absent=""),
    driver=At("spec.attacher"),
    volume=At("spec.source.persistentVolumeName"),
)
#: Namespace and `Kind/name` of what is scaled, and when it was scaled last.
_AUTOSCALER = Reader(
    lambda namespace, kind, name, time=None: ((namespace, f"{kind}/{name}"), time),
    namespace=NAMESPACE,
    kind=At("spec.scaleTargetRef.kind", absent=""),
    name=At("spec.scaleTargetRef.name", absent=""),
    time=At("status.lastScaleTime", datetime, aware),
)
_SERVICE = Reader(
    lambda namespace, name, selector=None: ((namespace, name), selector),
    namespace=NAMESPACE,
    name=NAME,
    selector=At("spec.selector", _SELECTOR, work.by_labels),
)

_NAME, _KEY, _ITSELF = attrgetter("name"), attrgetter("namespace", "name"), lambda item: item


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


#: Objects whose name is not read are compared as a whole.
KINDS: tuple[Kind[Any, Any], ...] = tuple(
    Kind(name, reader.wire, reader, key, otherwise=otherwise)
    for name, reader, key, otherwise in (
        ("PersistentVolumeClaim", _CLAIM, _KEY, "its storage class counts as unknown"),
        ("PersistentVolume", _VOLUME, _NAME, SPOILT),
        ("StorageClass", _STORAGE_CLASS, _NAME, SPOILT),
        ("CSINode", _CSI_NODE, _NAME, SPOILT),
        ("CSIDriver", _CSI_DRIVER, _NAME, SPOILT),
        ("CSIStorageCapacity", _STORAGE_CAPACITY, _ITSELF, SPOILT),
        ("VolumeAttachment", _ATTACHMENT, _ITSELF, SPOILT),
        ("HorizontalPodAutoscaler", _AUTOSCALER, _ITSELF, "what it scales is unknown"),
        ("Service", _SERVICE, itemgetter(0), SPOILT),
    )
)


def scheduler_inputs(items: Items, whole: Items) -> SchedulerInputs:
    """Return the objects: `whole` has those of a kind, but None also if one of them could not be read."""

    def mapped(
        kind: str, key: Callable[[Any], Any] = _NAME, value: Callable[[Any], Any] = _ITSELF
    ) -> dict[Any, Any] | None:
        found = whole(kind)
        return None if found is None else {key(each): value(each) for each in found}

    selectors = partial(mapped, key=attrgetter("key"), value=attrgetter("selector"))

    return SchedulerInputs(
        services=mapped("Service", itemgetter(0), itemgetter(1)),
        replica_sets=selectors("ReplicaSet"),
        replication_controllers=selectors("ReplicationController"),
        stateful_sets=selectors("StatefulSet"),
        claims=mapped("PersistentVolumeClaim", _KEY),
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
