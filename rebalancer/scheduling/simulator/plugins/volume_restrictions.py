"""VolumeRestrictions: a ReadWriteOncePod claim is for one pod, and an iSCSI disk for one pod per node.

Source: the Kubernetes documentation, Persistent Volumes (ReadWriteOncePod); scheduling plugins.  The reason has been
worded otherwise since 1.34.
"""

from collections.abc import Sequence

from rebalancer.cluster.placement import IscsiDisk
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.storage import READ_WRITE_ONCE_POD
from rebalancer.scheduling.simulator.claims import Claims, names
from rebalancer.scheduling.simulator.plugin import NO_REFUSALS, Refusals
from rebalancer.scheduling.simulator.state import State

TAKEN = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
)
TAKEN_BEFORE = ("node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",)
_OTHER_WORDS = 34
NO_DISK = ("node(s) had no available disk",)


class VolumeRestrictions:
    """Refuses nodes where a disk is in use, and all nodes if a ReadWriteOncePod claim is in use."""

    name = "VolumeRestrictions"

    def __init__(self, state: State) -> None:
        self._state = state
        self._claims = Claims(state.companions)

    def refusals(self, pod: Pod, nodes: Sequence[int]) -> Refusals:
        """Return the nodes where another pod keeps the pod from using a claim or a disk."""
        found: dict[int, tuple[str, ...]] = {}
        if names(pod) and self._taken(pod):
            found.update(dict.fromkeys(nodes, TAKEN if self._state.minor >= _OTHER_WORDS else TAKEN_BEFORE))
        if pod.spec.placement.disks:
            found.update({index: NO_DISK for index in nodes if self._in_use(pod.spec.placement.disks, index)})
        return found or NO_REFUSALS

    def _taken(self, pod: Pod) -> bool:
        sorted_out = self._claims.of(pod)
        claims = [*(claim for claim, _ in sorted_out.bound), *sorted_out.waiting]
        alone = [claim.name for claim in claims if READ_WRITE_ONCE_POD in claim.access_modes]
        return any(self._state.claimants.get((pod.namespace, name)) for name in alone)

    def _in_use(self, wanted: Sequence[IscsiDisk], index: int) -> bool:
        used = [disk for pod in self._state.residents[index] for disk in pod.spec.placement.disks]
        return any(one.iqn == other.iqn and not (one.read_only and other.read_only) for one in wanted for other in used)
