"""The plugins that look at volumes.

Source of VolumeBinding: the Kubernetes documentation, Persistent Volumes; Storage Classes (WaitForFirstConsumer,
allowedTopologies); Storage Capacity.

Source of VolumeZone: the Kubernetes documentation, well-known labels (topology.kubernetes.io/zone on
PersistentVolumes).  A node without any such label takes all; several zones of one volume are joined by two underscores.
A volume may have an older label than its node since 1.29.

Source of VolumeRestrictions: the Kubernetes documentation, Persistent Volumes (ReadWriteOncePod, for one pod);
scheduling plugins (an iSCSI disk, for one pod per node).

Source of NodeVolumeLimits: the Kubernetes documentation, Node-specific Volume Limits.  Since 1.32 volumes in
VolumeAttachments count like those of the pods that run there.  A wanted volume that is attached there, but that no pod
there uses, counts twice: as attached and as new (observed with 1.36).
"""

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import IscsiDisk, Pod
from rebalancer.cluster.scheduler_inputs import READ_WRITE_ONCE_POD, Claim, StorageClass, Volume
from rebalancer.cluster.selectors import any_term_matches
from rebalancer.scheduling.simulator.plugin import (
    Nodes,
    PodUnschedulableError,
    Reasons,
    Refusals,
    UnknownPlacementError,
)
from rebalancer.scheduling.simulator.state import State, claim_names

T = TypeVar("T")


def read(kind: str, objects: T | None) -> T:
    """Return objects that were read; raise UnknownPlacementError if they were not."""
    if objects is None:
        raise UnknownPlacementError(f"where the pod's volumes can be goes by {kind}, which were not read")
    return objects


class _PodClaims(NamedTuple):
    bound: Sequence[tuple[Claim, Volume | None]]  # claims with their volumes; None for a volume that does not exist
    waiting: Sequence[Claim]  # claims that get a volume once the pod has a node


class _ByVolumes(ABC):
    """Refuses nodes by the claims and disks of a pod; a pod without any passes."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._inputs = state.scheduler_inputs

    def refusals(self, pod: Pod, nodes: Nodes) -> Refusals | None:
        """Return the nodes that the claims or disks rule out; errors as for `_claim` and `read`."""
        found = self._refused(pod, nodes) if claim_names(pod) or pod.spec.placement.disks else {}
        return Refusals.of(found, len(self._state.nodes))

    @abstractmethod
    def _refused(self, pod: Pod, nodes: Nodes) -> Mapping[int, Reasons]: ...

    def _claims(self, pod: Pod) -> _PodClaims:
        claims = [self._claim(pod, name) for name in claim_names(pod)]
        volumes = read("PersistentVolumes", self._inputs.volumes) if claims else {}
        waiting = [claim for claim in claims if not claim.bound]
        if any(claim.volume or not self._storage_class(claim).waits for claim in waiting):
            raise PodUnschedulableError("pod has unbound immediate PersistentVolumeClaims")
        return _PodClaims([(claim, volumes.get(claim.volume)) for claim in claims if claim.bound], waiting)

    def _claim(self, pod: Pod, name: str) -> Claim:
        known: Mapping[tuple[str, str], Claim] = read("PersistentVolumeClaims", self._inputs.claims)
        claim = known.get((pod.namespace, name))
        if claim is None and name in pod.own_claims:
            raise PodUnschedulableError(
                f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
            )
        if claim is None:
            raise PodUnschedulableError(f'persistentvolumeclaim "{name}" not found')
        if claim.terminating:
            raise PodUnschedulableError(f'persistentvolumeclaim "{name}" is being deleted')
        return claim

    def _storage_class(self, claim: Claim) -> StorageClass:
        """Return the class of a claim; one without a class binds at once."""
        if not claim.storage_class:
            return StorageClass(name="")
        found = read("StorageClasses", self._inputs.storage_classes).get(claim.storage_class)
        if found is None:
            raise UnknownPlacementError(f"there is no StorageClass {claim.storage_class!r}")
        return found


_ATTACHMENTS_COUNT = 32

#: A driver, and its own name for a volume.
_Handle = tuple[str, str]


class NodeVolumeLimits(_ByVolumes):
    """Refuses nodes that take no more volumes."""

    name = "NodeVolumeLimits"

    def _refused(self, pod: Pod, nodes: Nodes) -> Mapping[int, Reasons]:
        wanted = self._handles((pod.namespace, name) for name in claim_names(pod)) if claim_names(pod) else set()
        if not wanted:
            return {}
        csi_nodes, known = read("CSINodes", self._inputs.csi_nodes), self._inputs.csi_drivers or {}
        if any(driver in known and known[driver].needed for driver, _ in wanted):
            raise UnknownPlacementError("a CSIDriver keeps pods from nodes without it, which is not simulated")
        found: dict[int, Reasons] = {}
        for index in nodes:
            csi_node = csi_nodes.get(self._state.nodes[index].name)
            limits = {name: limit for name, limit in csi_node.limits.items() if limit is not None} if csi_node else {}
            if any(driver in limits for driver, _ in wanted) and self._exceeds(wanted, limits, index):
                found[index] = ("node(s) exceed max volume count",)
        return found

    def _exceeds(self, wanted: set[_Handle], limits: dict[str, int], index: int) -> bool:
        used = self._handles(key for key, count in self._state.claims_on.of(index).items() if count)
        attached = self._attached.get(self._state.names[index], set())
        new, counts = wanted - used, Counter(driver for driver, _ in used | attached)
        counts.update(driver for driver, _ in new)
        return any(counts[driver] > limits[driver] for driver, _ in new if driver in limits)

    @cached_property
    def _attached(self) -> Mapping[str, set[_Handle]]:
        """What is attached, by name of the node; nothing where that does not count."""
        volumes, found = read("PersistentVolumes", self._inputs.volumes), defaultdict[str, set[_Handle]](set)
        count = self._state.minor >= _ATTACHMENTS_COUNT
        for each in read("VolumeAttachments", self._inputs.attachments) if count else ():
            volume = volumes.get(each.volume)
            if volume and volume.driver:
                found[each.node].add((volume.driver, volume.handle))
        return found

    def _handles(self, keys: Iterable[tuple[str, str]]) -> set[_Handle]:
        claims = read("PersistentVolumeClaims", self._inputs.claims)
        found = (self._handle(claims[key]) for key in keys if key in claims)
        return {handle for handle in found if handle is not None}

    def _handle(self, claim: Claim) -> _Handle | None:
        """Return the volume of a claim; one that is still to be made is named by its claim."""
        volume = read("PersistentVolumes", self._inputs.volumes).get(claim.volume)
        if volume is not None:
            return (volume.driver, volume.handle) if volume.driver else None
        provisioner = self._storage_class(claim).provisioner
        return (provisioner, f"{claim.namespace}/{claim.name}") if provisioner else None


_TAKEN = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
)


class VolumeRestrictions(_ByVolumes):
    """Refuses nodes where a disk is in use, and all nodes if a ReadWriteOncePod claim is in use."""

    name = "VolumeRestrictions"

    def _refused(self, pod: Pod, nodes: Nodes) -> Mapping[int, Reasons]:
        found = dict.fromkeys(nodes if self._taken(pod) else (), _TAKEN)
        if pod.spec.placement.disks:
            no_disk = ("node(s) had no available disk",)
            found.update({index: no_disk for index in nodes if self._in_use(pod.spec.placement.disks, index)})
        return found

    def _taken(self, pod: Pod) -> bool:
        bound, waiting = self._claims(pod)
        claims = (*(claim for claim, _ in bound), *waiting)
        alone = (claim.name for claim in claims if READ_WRITE_ONCE_POD in claim.access_modes)
        return any(self._state.claimants.get((pod.namespace, name)) for name in alone)

    def _in_use(self, wanted: Sequence[IscsiDisk], index: int) -> bool:
        only_read: dict[str, bool] = {}
        for disk in (disk for pod in self._state.residents[index] for disk in pod.spec.placement.disks):
            only_read[disk.iqn] = disk.read_only and only_read.get(disk.iqn, True)
        return any(each.iqn in only_read and not (each.read_only and only_read[each.iqn]) for each in wanted)


_NEWER = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_OLDER_LABELS_ARE_THE_SAME = 29
_LABELS = (*_NEWER, *_NEWER.values())


class VolumeZone(_ByVolumes):
    """Refuses nodes in other zones than the pod's volumes."""

    name = "VolumeZone"

    def _refused(self, pod: Pod, nodes: Nodes) -> Mapping[int, Reasons]:
        labels = [volume.labels for _, volume in self._claims(pod).bound if volume]
        asked = [(key, set(each[key].split("__"))) for each in labels for key in _LABELS if key in each]
        no_zone = ("node(s) had no available volume zone",)
        return {index: no_zone for index in nodes if asked and not self._is_in(self._state.nodes[index], asked)}

    def _is_in(self, node: Node, asked: Sequence[tuple[str, set[str]]]) -> bool:
        if not any(key in node.labels for key in _LABELS):
            return True
        newer = _NEWER if self._state.minor >= _OLDER_LABELS_ARE_THE_SAME else {}
        return all(node.labels.get(key, node.labels.get(newer.get(key, key))) in values for key, values in asked)


_ELSEWHERE = "node(s) didn't match PersistentVolume's node affinity"
_NONE_TO_BIND = "node(s) didn't find available persistent volumes to bind"


class VolumeBinding(_ByVolumes):
    """Refuses nodes where a pod's volumes cannot be reached, or a missing one can be neither bound nor made."""

    name = "VolumeBinding"

    def _refused(self, pod: Pod, nodes: Nodes) -> Mapping[int, Reasons]:
        claims = self._claims(pod)
        reasons = ((index, self._reasons(claims, self._state.nodes[index])) for index in nodes)
        return {index: reason for index, reason in reasons if reason}

    def _reasons(self, claims: _PodClaims, node: Node) -> Reasons:
        found = []
        if any(volume is None for _, volume in claims.bound):
            found.append("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)")
        elif any(volume is not None and not _reaches(volume, node) for _, volume in claims.bound):
            found.append(_ELSEWHERE)
        if claims.waiting:
            found += self._why_not_had(claims.waiting, node)
        return tuple(found)

    def _why_not_had(self, waiting: Sequence[Claim], node: Node) -> list[str]:
        """Return why these claims cannot get volumes on a node; existing volumes are tried first."""
        if any(claim.selected_node not in ("", node.name) for claim in waiting):
            return [_NONE_TO_BIND]
        to_make = [claim for claim in waiting if claim.selected_node]
        chosen: set[str] = set()
        for claim in sorted((claim for claim in waiting if not claim.selected_node), key=lambda each: each.requested):
            volume = self._match(claim, node, chosen)
            if volume is None:
                to_make.append(claim)
            else:
                chosen.add(volume.name)
        return list(dict.fromkeys(reason for claim in to_make if (reason := self._why_not_made(claim, node))))[:1]

    def _match(self, claim: Claim, node: Node, chosen: set[str]) -> Volume | None:
        volumes: Iterable[Volume] = read("PersistentVolumes", self._inputs.volumes).values()
        fitting = [each for each in volumes if each.name not in chosen and _suits(each, claim) and _reaches(each, node)]
        kept = [each for each in fitting if each.claim is not None]
        return min(kept or fitting, key=lambda each: each.capacity, default=None)

    def _why_not_made(self, claim: Claim, node: Node) -> str:
        storage_class = self._storage_class(claim)
        if storage_class.provisioner in ("", "kubernetes.io/no-provisioner"):
            return _NONE_TO_BIND
        if storage_class.topologies and not any_term_matches(storage_class.topologies, node.labels, node.name):
            return _NONE_TO_BIND
        return "" if self._has_room(storage_class, claim, node) else "node(s) did not have enough free storage"

    def _has_room(self, storage_class: StorageClass, claim: Claim, node: Node) -> bool:
        """Return whether a capacity is published that is for the node and large enough, where the driver does that."""
        driver = read("CSIDrivers", self._inputs.csi_drivers).get(storage_class.provisioner)
        if driver is None or not driver.capacity:
            return True
        here = (
            each.capacity if each.largest is None else each.largest
            for each in read("CSIStorageCapacities", self._inputs.storage_capacities)
            if each.storage_class == storage_class.name and each.nodes is not None and each.nodes.matches(node.labels)
        )
        return any(room is not None and room >= claim.requested for room in here)


def _reaches(volume: Volume, node: Node) -> bool:
    return volume.node_terms is None or any_term_matches(volume.node_terms, node.labels, node.name)


def _suits(volume: Volume, claim: Claim) -> bool:
    """Return whether a volume can be bound to a claim: kept for it or free, of its class and large enough."""
    if volume.claim is not None:
        free = volume.claim[:2] == (claim.namespace, claim.name) and volume.claim[2] in ("", claim.uid)
    else:
        free = volume.phase == "Available" and (claim.selector is None or claim.selector.matches(volume.labels))
    return (
        free
        and not volume.terminating
        and volume.capacity >= claim.requested
        and volume.filesystem == claim.filesystem
        and volume.storage_class == claim.storage_class
        and volume.attributes_class == claim.attributes_class
        and claim.access_modes <= volume.access_modes
    )
