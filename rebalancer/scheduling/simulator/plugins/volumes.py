"""The plugins that look at volumes.

VolumeBinding: a pod goes where its volumes are, or where they can be bound or made.

Source: the Kubernetes documentation, Persistent Volumes; Storage Classes (WaitForFirstConsumer, allowedTopologies);
Storage Capacity.  `ELSEWHERE` has been worded so since 1.33 (kubernetes/kubernetes#129887).

VolumeZone: a pod goes to the zone and region that its volumes are labelled with.

Source: the Kubernetes documentation, well-known labels (topology.kubernetes.io/zone on PersistentVolumes).  A node
without any such label takes all; several zones of one volume are joined by two underscores.  A volume may have an older
label than its node since 1.29.

VolumeRestrictions: a ReadWriteOncePod claim is for one pod, and an iSCSI disk for one pod per node.

Source: the Kubernetes documentation, Persistent Volumes (ReadWriteOncePod); scheduling plugins.  The reason has been
worded otherwise since 1.34.

NodeVolumeLimits: a node takes a limited number of volumes of a CSI driver.

Source: the Kubernetes documentation, Node-specific Volume Limits.  Since 1.32 volumes in VolumeAttachments count like
those of the pods that run there.  A wanted volume that is attached there, but that no pod there uses, counts twice: as
attached and as new (observed with 1.36).
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import IscsiDisk, Pod
from rebalancer.cluster.scheduler_inputs import READ_WRITE_ONCE_POD, Claim, StorageCapacity, StorageClass, Volume
from rebalancer.cluster.selectors import any_term_matches
from rebalancer.scheduling.simulator.claims import Claims, PodClaims, names, read
from rebalancer.scheduling.simulator.nodes import Nodes
from rebalancer.scheduling.simulator.plugin import Reasons, Refusals, UnknownPlacementError
from rebalancer.scheduling.simulator.state import State


class ByClaims(ABC):
    """Refuses nodes by the claims of a pod; a pod without any passes."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._claims = Claims(state.scheduler_inputs)

    def refusals(self, pod: Pod, nodes: Nodes) -> Refusals | None:
        """Return the nodes that the claims rule out.

        Raises:
            PodUnschedulableError: a claim is missing, is being deleted, or is unbound although its class binds at once.
            UnknownPlacementError: what the answer depends on was not read.
        """
        found = self._refused(self._claims.of(pod), nodes) if names(pod) else {}
        return Refusals.of(found, len(self._state.nodes))

    @abstractmethod
    def _refused(self, claims: PodClaims, nodes: Nodes) -> Mapping[int, Reasons]: ...


_ATTACHMENTS_COUNT = 32
EXCEEDED = ("node(s) exceed max volume count",)

#: A driver, and its own name for a volume.
_Handle = tuple[str, str]


class NodeVolumeLimits:
    """Refuses nodes that take no more volumes."""

    name = "NodeVolumeLimits"

    def __init__(self, state: State) -> None:
        self._state = state
        self._claims = Claims(state.scheduler_inputs)

    def refusals(self, pod: Pod, nodes: Nodes) -> Refusals | None:
        """Return the nodes where the pod's volumes would be too many."""
        wanted = self._handles((pod.namespace, name) for name in names(pod)) if names(pod) else set()
        if not wanted:
            return None
        csi_nodes = read("CSINodes", self._state.scheduler_inputs.csi_nodes)
        self._check_drivers({driver for driver, _ in wanted})
        found: dict[int, Reasons] = {}
        for index in nodes:
            csi_node = csi_nodes.get(self._state.nodes[index].name)
            limits = {name: limit for name, limit in csi_node.limits.items() if limit is not None} if csi_node else {}
            if any(driver in limits for driver, _ in wanted) and self._exceeds(wanted, limits, index):
                found[index] = EXCEEDED
        return Refusals.of(found, len(self._state.nodes))

    def _exceeds(self, wanted: set[_Handle], limits: dict[str, int], index: int) -> bool:
        used = self._handles(self._state.claims_on[index])
        new, counts = wanted - used, Counter(driver for driver, _ in used | self._attached(index))
        counts.update(driver for driver, _ in new)
        return any(counts[driver] > limits[driver] for driver, _ in new if driver in limits)

    def _attached(self, index: int) -> set[_Handle]:
        name = self._state.nodes[index].name
        volumes = read("PersistentVolumes", self._state.scheduler_inputs.volumes)
        found: set[_Handle] = set()
        if self._state.minor < _ATTACHMENTS_COUNT:
            return found
        attachments = read("VolumeAttachments", self._state.scheduler_inputs.attachments)
        for each in attachments:
            volume = volumes.get(each.volume) if each.node == name else None
            if volume and volume.driver:
                found.add((volume.driver, volume.handle))
        return found

    def _handles(self, keys: Iterable[tuple[str, str]]) -> set[_Handle]:
        claims = read("PersistentVolumeClaims", self._state.scheduler_inputs.claims)
        found = (self._handle(claims[key]) for key in keys if key in claims)
        return {handle for handle in found if handle is not None}

    def _handle(self, claim: Claim) -> _Handle | None:
        """Return the volume of a claim; one that is still to be made is named by its claim."""
        volume = read("PersistentVolumes", self._state.scheduler_inputs.volumes).get(claim.volume)
        if volume is not None:
            return (volume.driver, volume.handle) if volume.driver else None
        provisioner = self._claims.storage_class(claim).provisioner
        return (provisioner, f"{claim.namespace}/{claim.name}") if provisioner else None

    def _check_drivers(self, drivers: set[str]) -> None:
        known = self._state.scheduler_inputs.csi_drivers or {}
        if any(driver in known and known[driver].needed for driver in drivers):
            raise UnknownPlacementError("a CSIDriver keeps pods from nodes without it, which is not simulated")


TAKEN = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
)
TAKEN_BEFORE = ("node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",)
_TAKEN_IN_OTHER_WORDS = 34
NO_DISK = ("node(s) had no available disk",)


class VolumeRestrictions:
    """Refuses nodes where a disk is in use, and all nodes if a ReadWriteOncePod claim is in use."""

    name = "VolumeRestrictions"

    def __init__(self, state: State) -> None:
        self._state = state
        self._claims = Claims(state.scheduler_inputs)

    def refusals(self, pod: Pod, nodes: Nodes) -> Refusals | None:
        """Return the nodes where another pod keeps the pod from using a claim or a disk."""
        found: dict[int, Reasons] = {}
        if names(pod) and self._taken(pod):
            found.update(dict.fromkeys(nodes, TAKEN if self._state.minor >= _TAKEN_IN_OTHER_WORDS else TAKEN_BEFORE))
        if pod.spec.placement.disks:
            found.update({index: NO_DISK for index in nodes if self._in_use(pod.spec.placement.disks, index)})
        return Refusals.of(found, len(self._state.nodes))

    def _taken(self, pod: Pod) -> bool:
        sorted_out = self._claims.of(pod)
        claims = [*(claim for claim, _ in sorted_out.bound), *sorted_out.waiting]
        alone = [claim.name for claim in claims if READ_WRITE_ONCE_POD in claim.access_modes]
        return any(self._state.claimants.get((pod.namespace, name)) for name in alone)

    def _in_use(self, wanted: Sequence[IscsiDisk], index: int) -> bool:
        used = [disk for pod in self._state.residents[index] for disk in pod.spec.placement.disks]
        return any(one.iqn == other.iqn and not (one.read_only and other.read_only) for one in wanted for other in used)


NO_ZONE = ("node(s) had no available volume zone",)
_NEWER = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_OLDER_LABELS_ARE_THE_SAME = 29
_LABELS = (*_NEWER, *_NEWER.values())


class VolumeZone(ByClaims):
    """Refuses nodes in other zones than the pod's volumes."""

    name = "VolumeZone"

    def _refused(self, claims: PodClaims, nodes: Nodes) -> Mapping[int, Reasons]:
        """Return the nodes in other zones or regions."""
        asked = [label for _, volume in claims.bound if volume for label in _zones(volume)]
        if not asked:
            return {}
        return {index: NO_ZONE for index in nodes if not self._is_in(self._state.nodes[index], asked)}

    def _is_in(self, node: Node, asked: Sequence[tuple[str, set[str]]]) -> bool:
        if not any(key in node.labels for key in _LABELS):
            return True
        newer = _NEWER if self._state.minor >= _OLDER_LABELS_ARE_THE_SAME else {}
        return all(node.labels.get(key, node.labels.get(newer.get(key, key))) in values for key, values in asked)


def _zones(volume: Volume) -> list[tuple[str, set[str]]]:
    return [(key, set(volume.labels[key].split("__"))) for key in _LABELS if key in volume.labels]


ELSEWHERE = "node(s) didn't match PersistentVolume's node affinity"
ELSEWHERE_BEFORE = "node(s) had volume node affinity conflict"
_OTHER_WORDS = 33
NONE_TO_BIND = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"


class VolumeBinding(ByClaims):
    """Refuses nodes where a pod's volumes cannot be used."""

    name = "VolumeBinding"

    def _refused(self, claims: PodClaims, nodes: Nodes) -> Mapping[int, Reasons]:
        """Return the nodes from which a volume cannot be reached, or where a missing one cannot be bound or made."""
        reasons = ((index, self._reasons(claims, self._state.nodes[index])) for index in nodes)
        return {index: reason for index, reason in reasons if reason}

    def _reasons(self, claims: PodClaims, node: Node) -> tuple[str, ...]:
        found = []
        if any(volume is None for _, volume in claims.bound):
            found.append(NO_VOLUME)
        elif any(volume is not None and not reaches(volume, node) for _, volume in claims.bound):
            found.append(ELSEWHERE if self._state.minor >= _OTHER_WORDS else ELSEWHERE_BEFORE)
        if claims.waiting:
            found += self._why_not_had(claims.waiting, node)
        return tuple(found)

    def _why_not_had(self, waiting: Sequence[Claim], node: Node) -> list[str]:
        """Return why these claims cannot get volumes on a node; existing volumes are tried first."""
        if any(claim.selected_node not in ("", node.name) for claim in waiting):
            return [NONE_TO_BIND]
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
        volumes: Iterable[Volume] = read("PersistentVolumes", self._state.scheduler_inputs.volumes).values()
        fitting = [each for each in volumes if each.name not in chosen and suits(each, claim) and reaches(each, node)]
        kept = [each for each in fitting if each.claim is not None]
        return min(kept or fitting, key=lambda each: each.capacity, default=None)

    def _why_not_made(self, claim: Claim, node: Node) -> str:
        storage_class = self._claims.storage_class(claim)
        if storage_class.provisioner in ("", _NO_PROVISIONER):
            return NONE_TO_BIND
        if storage_class.topologies and not any_term_matches(storage_class.topologies, node.labels, node.name):
            return NONE_TO_BIND
        return "" if self._has_room(storage_class, claim, node) else NO_SPACE

    def _has_room(self, storage_class: StorageClass, claim: Claim, node: Node) -> bool:
        driver = read("CSIDrivers", self._state.scheduler_inputs.csi_drivers).get(storage_class.provisioner)
        if driver is None or not driver.capacity:
            return True
        capacities = read("CSIStorageCapacities", self._state.scheduler_inputs.storage_capacities)
        return any(offers(each, claim, node) for each in capacities if each.storage_class == storage_class.name)


def reaches(volume: Volume, node: Node) -> bool:
    """Return whether a volume can be used from a node."""
    return volume.node_terms is None or any_term_matches(volume.node_terms, node.labels, node.name)


def suits(volume: Volume, claim: Claim) -> bool:
    """Return whether a volume can be bound to a claim: kept for it or free, of its class and large enough."""
    key = (claim.namespace, claim.name)
    if volume.claim is not None and (volume.claim[:2] != key or volume.claim[2] not in ("", claim.uid)):
        return False
    if volume.claim is None and (volume.phase != "Available" or not _selected(volume, claim)):
        return False
    return (
        not volume.terminating
        and volume.capacity >= claim.requested
        and volume.filesystem == claim.filesystem
        and volume.storage_class == claim.storage_class
        and volume.attributes_class == claim.attributes_class
        and claim.access_modes <= volume.access_modes
    )


def _selected(volume: Volume, claim: Claim) -> bool:
    return claim.selector is None or claim.selector.matches(volume.labels)


def offers(capacity: StorageCapacity, claim: Claim, node: Node) -> bool:
    """Return whether a published capacity is for the node and large enough."""
    room = capacity.capacity if capacity.largest is None else capacity.largest
    here = capacity.nodes is not None and capacity.nodes.matches(node.labels)
    return here and room is not None and room >= claim.requested
