"""VolumeZone: a pod goes to the zone and region that its volumes are labelled with.

Source: the Kubernetes documentation, well-known labels (topology.kubernetes.io/zone on PersistentVolumes).  A node
without any such label takes all; several zones of one volume are joined by two underscores.  A volume may have an older
label than its node since 1.29.
"""

from collections.abc import Sequence

from rebalancer.cluster.node import Node
from rebalancer.cluster.storage import Volume
from rebalancer.scheduling.simulator.claims import PodClaims
from rebalancer.scheduling.simulator.plugin import NO_REFUSALS, Refusals
from rebalancer.scheduling.simulator.plugins.by_claims import ByClaims

REASON = ("node(s) had no available volume zone",)
_NEWER = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_OLDER_LABELS_ARE_THE_SAME = 29
_LABELS = (*_NEWER, *_NEWER.values())


class VolumeZone(ByClaims):
    """Refuses nodes in other zones than the pod's volumes."""

    name = "VolumeZone"

    def _refused(self, claims: PodClaims, nodes: Sequence[int]) -> Refusals:
        """Return the nodes in other zones or regions."""
        asked = [label for _, volume in claims.bound if volume for label in _zones(volume)]
        if not asked:
            return NO_REFUSALS
        return {index: REASON for index in nodes if not self._is_in(self._state.nodes[index], asked)}

    def _is_in(self, node: Node, asked: Sequence[tuple[str, set[str]]]) -> bool:
        if not any(key in node.labels for key in _LABELS):
            return True
        newer = _NEWER if self._state.minor >= _OLDER_LABELS_ARE_THE_SAME else {}
        return all(node.labels.get(key, node.labels.get(newer.get(key, key))) in values for key, values in asked)


def _zones(volume: Volume) -> list[tuple[str, set[str]]]:
    return [(key, set(volume.labels[key].split("__"))) for key in _LABELS if key in volume.labels]
