"""NodeResourcesFit: room by requests, and a score by how much is requested.

Source: the Kubernetes documentation, Resource Management; Resource Bin Packing (strategies LeastAllocated,
MostAllocated, RequestedToCapacityRatio).  Scores of cpu and memory count containers that request nothing with 100m and
200Mi each; other resources count as requested, and only for pods that request them.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_

import numpy as np

from rebalancer.cluster.pod import Pod, PodSpec
from rebalancer.cluster.resources import CPU, MEMORY, PODS
from rebalancer.scheduling.equivalence import BySpec
from rebalancer.scheduling.simulator.nodes import ByNode, Mask, Nodes
from rebalancer.scheduling.simulator.plugin import Refusals
from rebalancer.scheduling.simulator.scorers import Column, Scorer, least_allocated
from rebalancer.scheduling.simulator.shapes import Shapes
from rebalancer.scheduling.simulator.state import State, counted, scored_of

TOO_MANY = "Too many pods"
EVEN: Mapping[str, int] = {CPU: 1, MEMORY: 1}
_SHORT = {PODS: TOO_MANY, CPU: "Insufficient cpu", MEMORY: "Insufficient memory"}
_NATIVE = (CPU, MEMORY, "ephemeral-storage")


class NodeResourcesFit:
    """Refuses full nodes, and scores the others.

    Args:
        state: the cluster.
        scorer: the strategy: what nodes score.
        weights: of the resources that are scored.
        ignored: returns whether an extended resource is ignored.
    """

    name = "NodeResourcesFit"

    def __init__(
        self,
        state: State,
        scorer: Scorer = least_allocated,
        weights: Mapping[str, int] = EVEN,
        ignored: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._state = state
        self._scorer = scorer
        self._weights = weights
        self._ignored = ignored
        self._asked = BySpec(self._requests)
        self._scored = BySpec(self._amounts)
        self._short = Shapes(state, self._is_short)
        self._scores = Shapes(state, self._score)

    def refusals(self, pod: Pod, _nodes: Nodes) -> Refusals | None:
        """Return the nodes without room, and which requests do not fit."""
        short = self._short.by_node(pod)
        return Refusals(short.copy(), lambda index: self._lacking(pod, index)) if short.any() else None

    def _is_short(self, pod: Pod, nodes: Nodes) -> Mask:
        rooms = ((amount, self._state.room(name)) for name, amount in self._asked.of(pod.spec))
        short: Mask = reduce(or_, [amount > nodes.of(offered) - nodes.of(taken) for amount, (offered, taken) in rooms])
        return short

    def _lacking(self, pod: Pod, index: int) -> tuple[str, ...]:
        rooms = ((name, amount, *self._state.room(name)) for name, amount in self._asked.of(pod.spec))
        lacking = (name for name, amount, offered, taken in rooms if amount > offered[index] - taken[index])
        return tuple(_SHORT.get(name) or f"Insufficient {name}" for name in lacking)

    def _requests(self, spec: PodSpec) -> list[tuple[str, int]]:
        asked = ((PODS, 1), *spec.requests.items())
        return [(name, counted(amount)) for name, amount in asked if amount > 0 and not self._ignored(name)]

    def scores(self, pod: Pod, nodes: Nodes) -> ByNode:
        """Return the strategy's score of each node with the pod on it."""
        return self._scores.of(pod, nodes)

    def _score(self, pod: Pod, nodes: Nodes) -> ByNode:
        columns = [self._column(name, more, nodes) for name, more in self._scored.of(pod.spec)]
        return self._scorer(columns) if columns else np.zeros(nodes.shape, dtype=np.int64)

    def _amounts(self, spec: PodSpec) -> list[tuple[str, int]]:
        """Return the resources by which nodes are scored for a pod, and how much of them it takes."""
        names = [name for name in self._weights if name in _NATIVE or spec.requests.get(name)]
        requests = {**spec.requests, **scored_of(spec)}
        return [(name, counted(requests.get(name, 0))) for name in names]

    def _column(self, name: str, more: int, nodes: Nodes) -> Column:
        offered, taken = self._state.room(name)
        taken = self._state.assumed.get(name, taken)
        return Column(nodes.of(taken) + more, nodes.of(offered), self._weights[name])
