"""NodeResourcesBalancedAllocation: nodes whose shares of cpu and memory are even.

Source: the Kubernetes documentation, scheduling plugins.  For each node:

1. The share of each resource that is requested, with the pod.
2. Evenness: 100 less the standard deviation of the shares in percent.  Up to 1.35 this is the score.
3. Since 1.36 (kubernetes/kubernetes#135573) the score is 50 plus half of: 50, plus evenness with the pod, less evenness
   without it.  So a pod that changes nothing scores 75.

Example: shares of cpu and memory are 25 % and 50 %, evenness 87 (rounded down).  With a pod that raises cpu to 50 %,
evenness is 100: the score is 100 up to 1.35, and 50 + 63 // 2 = 81 since 1.36.

Since 1.33 (#130260) the plugin does not score pods that request none of the resources.
"""

from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from rebalancer.cluster.pod import Pod, PodSpec
from rebalancer.cluster.resources import Resources
from rebalancer.scheduling.equivalence import BySpec
from rebalancer.scheduling.simulator.nodes import WHOLE, ByNode, Nodes
from rebalancer.scheduling.simulator.plugins.node_resources_fit import EVEN
from rebalancer.scheduling.simulator.state import Shapes, State, counted

_SITS_OUT = 33
_BY_CHANGE = 36
_HALF = 50
_TWO = 2
_NATIVE = ("cpu", "memory", "ephemeral-storage")


class NodeResourcesBalancedAllocation:
    """Scores nodes by how even their shares are."""

    name = "NodeResourcesBalancedAllocation"

    def __init__(self, state: State, weights: Mapping[str, int] = EVEN) -> None:
        self._state = state
        self._resources = tuple(weights)
        self._amounts = BySpec(self._requests)
        self._scores = Shapes(state, self._score)
        # Evenness without the pod is the same for all pods that are scored by the same resources.
        self._before = Shapes(state, self._evenness_before, self._names)

    def scores(self, pod: Pod, nodes: Nodes) -> ByNode | None:
        """Return how even the shares are with the pod, or, since 1.36, how much more even they become."""
        if self._state.minor >= _SITS_OUT and not any(pod.spec.requests.get(name) for name in self._resources):
            return None
        return self._scores.of(pod, nodes)

    def _score(self, pod: Pod, nodes: Nodes) -> ByNode:
        after = self._evenness(self._amounts.of(pod.spec), nodes)
        if self._state.minor < _BY_CHANGE:
            return after
        return _HALF + (_HALF + after - nodes.of(self._before.by_node(pod))) // _TWO

    def _names(self, pod: Pod) -> tuple[str, ...]:
        return tuple(self._amounts.of(pod.spec))

    def _requests(self, spec: PodSpec) -> Resources:
        """Return how much of each resource that is scored a pod requests."""
        names = (name for name in self._resources if name in _NATIVE or spec.requests.get(name))
        return {name: counted(spec.requests.get(name, 0)) for name in names}

    def _evenness_before(self, pod: Pod, nodes: Nodes) -> ByNode:
        return self._evenness(dict.fromkeys(self._names(pod), 0), nodes)

    def _evenness(self, more: Resources, nodes: Nodes) -> ByNode:
        """Return 100 less the standard deviation of the shares in percent, node by node.

        In floating point, as the scheduler does; a resource that a node does not offer does not count there.
        """
        columns = [self._shares(name, amount, nodes) for name, amount in more.items()]
        if len(columns) == _TWO and nodes.shape and not any((column < 0).any() for column in columns):  # as a rule
            one, other = columns
            return ((1 - abs((one - other) / _TWO)) * WHOLE).astype(np.int64)
        rows = zip(*map(nodes.listed, columns), strict=True) if columns else [()] * len(nodes)
        return np.array([_evenness(shares) for shares in rows], dtype=np.int64).reshape(nodes.shape)

    def _shares(self, name: str, more: int, nodes: Nodes) -> NDArray[np.float64]:
        offered, taken = map(nodes.of, self._state.room(name))
        asked = taken + more
        share = asked / (offered + (offered <= 0))
        return (share * (asked < offered) + (asked >= offered)) * (offered > 0) - (offered <= 0)


def _evenness(all_shares: Sequence[float]) -> int:
    shares = [share for share in all_shares if share >= 0]
    if len(shares) == _TWO:
        one, other = shares
        return int((1 - abs((one - other) / _TWO)) * WHOLE)
    if len(shares) < _TWO:
        return WHOLE
    mean = sum(shares) / len(shares)
    return int((1 - sqrt(sum((share - mean) * (share - mean) for share in shares) / len(shares))) * WHOLE)
