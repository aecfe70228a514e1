"""PodCapacityOfNode: nodes with few pods; not part of Kubernetes, but of custom schedulers.

The score is the share of free pod slots in percent, rounded down: 21, 17 and 25 of 110 pods score 80, 84 and 77.
"""

from collections.abc import Sequence

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import PODS
from rebalancer.scheduling.simulator.nodes import WHOLE
from rebalancer.scheduling.simulator.state import State


class PodCapacityOfNode:
    """Scores nodes by the number of their pods."""

    name = "PodCapacityOfNode"

    def __init__(self, state: State) -> None:
        self._state = state

    def scores(self, _pod: Pod, nodes: Sequence[int]) -> list[int]:
        """Return the share of free pod slots, in percent."""
        offered, taken = self._state.room(PODS)
        return [_score(offered[index], taken[index]) for index in nodes]


def _score(most: int, running: int) -> int:
    return max(most - running, 0) * WHOLE // most if most else 0
