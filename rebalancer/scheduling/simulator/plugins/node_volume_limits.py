"""NodeVolumeLimits: a node takes a limited number of volumes of a CSI driver.

Source: the Kubernetes documentation, Node-specific Volume Limits.  Since 1.32 volumes in VolumeAttachments count like
those of the pods that run there.  A wanted volume that is attached there, but that no pod there uses, counts twice: as
attached and as new (observed with 1.36).
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.storage import Claim
from rebalancer.scheduling.simulator.claims import Claims, names, read
from rebalancer.scheduling.simulator.plugin import NO_REFUSALS, Refusals, UnknownPlacementError
from rebalancer.scheduling.simulator.state import State

_ATTACHMENTS_COUNT = 32
EXCEEDED = ("node(s) exceed max volume count",)

#: A driver, and its own name for a volume.
_Handle = tuple[str, str]


class NodeVolumeLimits:
    """Refuses nodes that take no more volumes."""

    name = "NodeVolumeLimits"

    def __init__(self, state: State) -> None:
        self._state = state
        self._claims = Claims(state.companions)

    def refusals(self, pod: Pod, nodes: Sequence[int]) -> Refusals:
        """Return the nodes where the pod's volumes would be too many."""
        wanted = self._handles((pod.namespace, name) for name in names(pod)) if names(pod) else set()
        if not wanted:
            return NO_REFUSALS
        csi_nodes = read("CSINodes", self._state.companions.csi_nodes)
        self._check_drivers({driver for driver, _ in wanted})
        found = {}
        for index in nodes:
            csi_node = csi_nodes.get(self._state.nodes[index].name)
            limits = {name: limit for name, limit in csi_node.limits.items() if limit is not None} if csi_node else {}
            if any(driver in limits for driver, _ in wanted) and self._exceeds(wanted, limits, index):
                found[index] = EXCEEDED
        return found

    def _exceeds(self, wanted: set[_Handle], limits: dict[str, int], index: int) -> bool:
        used = self._handles(self._state.claims_on[index])
        new, counts = wanted - used, Counter(driver for driver, _ in used | self._attached(index))
        counts.update(driver for driver, _ in new)
        return any(counts[driver] > limits[driver] for driver, _ in new if driver in limits)

    def _attached(self, index: int) -> set[_Handle]:
        name = self._state.nodes[index].name
        volumes = read("PersistentVolumes", self._state.companions.volumes)
        found: set[_Handle] = set()
        if self._state.minor < _ATTACHMENTS_COUNT:
            return found
        attachments = read("VolumeAttachments", self._state.companions.attachments)
        for each in attachments:
            volume = volumes.get(each.volume) if each.node == name else None
            if volume and volume.driver:
                found.add((volume.driver, volume.handle))
        return found

    def _handles(self, keys: Iterable[tuple[str, str]]) -> set[_Handle]:
        claims = read("PersistentVolumeClaims", self._state.companions.claims)
        found = (self._handle(claims[key]) for key in keys if key in claims)
        return {handle for handle in found if handle is not None}

    def _handle(self, claim: Claim) -> _Handle | None:
        """Return the volume of a claim; one that is still to be made is named by its claim."""
        volume = read("PersistentVolumes", self._state.companions.volumes).get(claim.volume)
        if volume is not None:
            return (volume.driver, volume.handle) if volume.driver else None
        provisioner = self._claims.storage_class(claim).provisioner
        return (provisioner, f"{claim.namespace}/{claim.name}") if provisioner else None

    def _check_drivers(self, drivers: set[str]) -> None:
        known = self._state.companions.csi_drivers or {}
        if any(driver in known and known[driver].needed for driver in drivers):
            raise UnknownPlacementError("a CSIDriver keeps pods from nodes without it, which is not simulated")
