"""VolumeBinding: a pod goes where its volumes are, or where they can be bound or made.

Source: the Kubernetes documentation, Persistent Volumes; Storage Classes (WaitForFirstConsumer, allowedTopologies);
Storage Capacity.  The first of the reasons below has been worded so since 1.33
(kubernetes/kubernetes#129887).
"""

from collections.abc import Iterable, Sequence

from rebalancer.cluster.node import Node
from rebalancer.cluster.selectors import any_term_matches
from rebalancer.cluster.storage import Claim, StorageCapacity, StorageClass, Volume
from rebalancer.scheduling.simulator.claims import PodClaims, read
from rebalancer.scheduling.simulator.plugin import Refusals
from rebalancer.scheduling.simulator.plugins.by_claims import ByClaims

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

    def _refused(self, claims: PodClaims, nodes: Sequence[int]) -> Refusals:
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
        volumes: Iterable[Volume] = read("PersistentVolumes", self._state.companions.volumes).values()
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
        driver = read("CSIDrivers", self._state.companions.csi_drivers).get(storage_class.provisioner)
        if driver is None or not driver.capacity:
            return True
        capacities = read("CSIStorageCapacities", self._state.companions.storage_capacities)
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
