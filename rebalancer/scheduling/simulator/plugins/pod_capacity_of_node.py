"""PodCapacityOfNode: nodes with few pods; not part of Kubernetes, but of custom schedulers.

The score is the share of free pod slots in percent, rounded down: 21, 17 and 25 of 110 pods score 80, 84 and 77.
"""

import numpy as np

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import PODS
from rebalancer.scheduling.simulator.nodes import WHOLE, ByNode, Nodes
from rebalancer.scheduling.simulator.state import State


class PodCapacityOfNode:
    """Scores nodes by the number of their pods."""

    name = "PodCapacityOfNode"

    def __init__(self, state: State) -> None:
        self._state = state

    def scores(self, _pod: Pod, nodes: Nodes) -> ByNode:
        """Return the share of free pod slots, in percent."""
        offered, taken = map(nodes.of, self._state.room(PODS))
        scores: ByNode = np.maximum(offered - taken, 0) * WHOLE // np.maximum(offered, 1)
        return scores
