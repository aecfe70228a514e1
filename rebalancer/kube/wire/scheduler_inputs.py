"""What the scheduler reads beside nodes and pods, from the API server's JSON."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any

import msgspec

from rebalancer.cluster.scheduler_inputs import Notes, SchedulerInputs, Template
from rebalancer.cluster.selectors import LabelSelector
from rebalancer.kube.wire import workloads as work
from rebalancer.kube.wire.objects import aware
from rebalancer.kube.wire.pages import SPOILT, Kind, itself
from rebalancer.kube.wire.shared_fields import Metadata, SelectingWire

#: Owners whose annotations count.
OWNERS = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "Job")

#: The kinds that decide where the scheduler would put pods, beside nodes and pods.
SCHEDULER_KINDS = frozenset(
    (
        *(*OWNERS, "Service", "Namespace", "PersistentVolumeClaim", "PersistentVolume", "StorageClass"),
        *("CSINode", "CSIDriver", "CSIStorageCapacity", "VolumeAttachment"),
    )
)

#: The kinds that say whether an owner is left alone, beside pods and nodes.
TRUST_KINDS = frozenset((*OWNERS, "HorizontalPodAutoscaler", "Namespace"))

#: Returns the objects of a kind; None if the kind was not read.
Items = Callable[[str], tuple[Any, ...] | None]

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


KINDS: tuple[Kind[Any, Any], ...] = (
    Kind("HorizontalPodAutoscaler", _AutoscalerWire, _autoscaler, itself, otherwise="what it scales is unknown"),
    Kind("Service", _ServiceWire, _service, itemgetter(0), otherwise=SPOILT),
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
        if each.owner is None:
            yield each
        elif each.owner.kind != "Deployment":
            yield _marked(each, changing=active[each.owner.uid] > 1)
        elif each.owner.uid in deployments:
            yield _marked(each, changing=deployments[each.owner.uid])


def _marked(workload: work.PodMaker, *, changing: bool) -> work.PodMaker:
    if not changing or workload.template is None:
        return workload
    return msgspec.structs.replace(workload, template=msgspec.structs.replace(workload.template, changing=True))
