"""NodeResourcesFit: room by requests, and a score by how much is requested.

Source: the Kubernetes documentation, Resource Management; Resource Bin Packing (strategies LeastAllocated,
MostAllocated, RequestedToCapacityRatio).  Scores of cpu and memory count containers that request nothing with 100m and
200Mi each; other resources count as requested, and only for pods that request them.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import compress

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import CPU, MEMORY, PODS
from rebalancer.scheduling.simulator.nodes import Nodes
from rebalancer.scheduling.simulator.plugin import Refusals
from rebalancer.scheduling.simulator.scorers import Column, Scorer, least_allocated
from rebalancer.scheduling.simulator.shapes import Shapes
from rebalancer.scheduling.simulator.state import State, scored_of

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
        self._short = Shapes(state, self._lacking)
        self._scores = Shapes(state, self._score)

    def refusals(self, pod: Pod, _nodes: Sequence[int]) -> Refusals:
        """Return the nodes without room, and which requests do not fit."""
        lacking = self._short.by_node(pod)
        return {index: lacking[index] for index in compress(range(len(lacking)), lacking)}

    def _lacking(self, pod: Pod, nodes: Nodes) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = [()] * len(nodes)
        for name, amount in ((PODS, 1), *pod.spec.requests.items()):
            if amount > 0 and not self._ignored(name):
                offered, taken = (nodes.of(column) for column in self._state.room(name))
                for place, (there, gone) in enumerate(zip(offered, taken, strict=True)):
                    if amount > there - gone:
                        found[place] = (*found[place], _SHORT.get(name) or f"Insufficient {name}")
        return found

    def scores(self, pod: Pod, nodes: Nodes) -> Sequence[int]:
        """Return the strategy's score of each node with the pod on it."""
        return self._scores.of(pod, nodes)

    def _score(self, pod: Pod, nodes: Nodes) -> list[int]:
        counted = [name for name in self._weights if name in _NATIVE or pod.spec.requests.get(name)]
        columns = [self._column(pod, name, nodes) for name in counted]
        return self._scorer(columns) if columns else [0] * len(nodes)

    def _column(self, pod: Pod, name: str, nodes: Nodes) -> Column:
        offered, taken = self._state.room(name)
        more = pod.spec.requests.get(name, 0)
        if name in self._state.assumed:
            taken, more = self._state.assumed[name], scored_of(pod)[name]
        return Column([each + more for each in nodes.of(taken)], nodes.of(offered), self._weights[name])
