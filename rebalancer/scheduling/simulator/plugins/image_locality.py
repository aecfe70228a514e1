"""ImageLocality: nodes that have the images of a pod already, the larger and the more widespread the better.

Source: the Kubernetes documentation, scheduling plugins; the figures (23 MB, 1000 MB a container) were checked against
the scheduler of 1.36.  An image counts with its size times the share of nodes that have it, so that one node with a
new image does not draw every pod.  Images of init containers count since 1.30 (kubernetes/kubernetes#123366);
those of image volumes since 1.36 (#130231), but the most that a pod can have is still 1000 MB for each container and
init container.
"""

import numpy as np

from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.simulator.nodes import WHOLE, ByNode, Nodes
from rebalancer.scheduling.simulator.state import State

_INIT_IMAGES = 30
_VOLUME_IMAGES = 36
_LEAST = 23 << 20
_MOST = 1000 << 20


class ImageLocality:
    """Scores nodes by the images they have."""

    name = "ImageLocality"

    def __init__(self, state: State) -> None:
        self._state = state
        self._count = len(state.nodes)
        self._sizes: dict[str, int] = {}
        nodes: dict[str, dict[int, None]] = {}
        for index, node in enumerate(state.nodes):
            for image in node.images:
                for name in image.names:
                    self._sizes.setdefault(name, image.size)
                    nodes.setdefault(name, {})[index] = None
        self._nodes = {name: Nodes(list(found)) for name, found in nodes.items()}

    def scores(self, pod: Pod, nodes: Nodes) -> ByNode:
        """Return 0 where the pod's images are small, rare or absent, 100 where they are large and common."""
        containers, volumes = self._images(pod)
        sizes = np.zeros(self._count, dtype=np.int64)
        for image in (*containers, *volumes):
            if image in self._nodes:
                sizes[self._nodes[image].indexes] += self._share(image)
        most = _MOST * max(len(containers), 1)
        return WHOLE * (np.maximum(np.minimum(nodes.of(sizes), most), _LEAST) - _LEAST) // (most - _LEAST)

    def _images(self, pod: Pod) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the images of containers and those of volumes, as far as they count."""
        placement, minor = pod.spec.placement, self._state.minor
        inits = placement.init_images if minor >= _INIT_IMAGES else ()
        return (*placement.images, *inits), placement.volume_images if minor >= _VOLUME_IMAGES else ()

    def _share(self, image: str) -> int:
        return int(float(self._sizes[image]) * (len(self._nodes[image]) / self._count))
