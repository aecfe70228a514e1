"""NodeResourcesBalancedAllocation: nodes whose shares of cpu and memory are even.

Source: the Kubernetes documentation, scheduling plugins.  Up to 1.35 the score is 100 less the standard deviation of
the shares in percent, with the pod; since 1.36 (kubernetes/kubernetes#135573) it goes by how much the pod changes that.
Since 1.33 (#130260) it sits out for pods that request none of the resources.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt

from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.simulator.arithmetic import WHOLE
from rebalancer.scheduling.simulator.plugins.node_resources_fit import EVEN
from rebalancer.scheduling.simulator.shapes import Shapes
from rebalancer.scheduling.simulator.state import State

_SITS_OUT = 33
_BY_CHANGE = 36
_HALF = 50
_TWO = 2
_NATIVE = ("cpu", "memory", "ephemeral-storage")


class NodeResourcesBalancedAllocation:
    """Scores nodes by how even their shares are."""

    name = "NodeResourcesBalancedAllocation"

    def __init__(self, state: State, minor: int, weights: Mapping[str, int] = EVEN) -> None:
        self._state = state
        self._minor = minor
        self._resources = tuple(weights)
        self._scores = Shapes(state, self._score)

    def scores(self, pod: Pod, nodes: Sequence[int]) -> list[int] | None:
        """Return how even the shares are with the pod, or how much evener they become."""
        if self._minor >= _SITS_OUT and not any(pod.spec.requests.get(name) for name in self._resources):
            return None
        known = self._scores.by_node(pod)
        return [known[index] for index in nodes]

    def _score(self, pod: Pod, index: int) -> int:
        names = [name for name in self._resources if name in _NATIVE or pod.spec.requests.get(name)]
        offered, taken = self._state.nodes[index].allocatable, self._state.requested[index]
        names = [name for name in names if offered.get(name)]
        after = _evenness((taken.get(name, 0) + pod.spec.requests.get(name, 0)) / offered[name] for name in names)
        if self._minor < _BY_CHANGE:
            return after
        before = _evenness(taken.get(name, 0) / offered[name] for name in names)
        return _HALF + (_HALF + after - before) // _TWO


def _evenness(shares: Iterable[float]) -> int:
    """Return 100 less the standard deviation of the shares in percent, in floating point as the scheduler does."""
    capped = [min(share, 1.0) for share in shares]
    deviation = 0.0
    if len(capped) == _TWO:
        deviation = abs((capped[0] - capped[1]) / _TWO)
    elif len(capped) > _TWO:
        mean = sum(capped) / len(capped)
        deviation = sqrt(sum((share - mean) * (share - mean) for share in capped) / len(capped))
    return int((1 - deviation) * WHOLE)
