"""NodeResourcesFit: room by requests, and a score by how much is requested.

Source: the Kubernetes documentation, Resource Management; Resource Bin Packing (strategies LeastAllocated,
MostAllocated, RequestedToCapacityRatio).  Scores of cpu and memory count containers that request nothing with 100m and
200Mi each; other resources count as requested, and only for pods that request them.
"""

from collections.abc import Callable, Mapping, Sequence

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import CPU, MEMORY, PODS
from rebalancer.scheduling.simulator.plugin import NO_REFUSALS, Refusals
from rebalancer.scheduling.simulator.scorers import Amounts, least_allocated
from rebalancer.scheduling.simulator.shapes import Shapes
from rebalancer.scheduling.simulator.state import State, scored_of

TOO_MANY = "Too many pods"
EVEN: Mapping[str, int] = {CPU: 1, MEMORY: 1}
_SHORT = {CPU: "Insufficient cpu", MEMORY: "Insufficient memory"}
_NATIVE = (CPU, MEMORY, "ephemeral-storage")


class NodeResourcesFit:
    """Refuses full nodes, and scores the others.

    Args:
        state: the cluster.
        scorer: the strategy: what a node scores with such amounts requested of such amounts.
        weights: of the resources that are scored.
        ignored: tells which extended resources are not looked at.
    """

    name = "NodeResourcesFit"

    def __init__(
        self,
        state: State,
        scorer: Callable[[Amounts, Mapping[str, int]], int] = least_allocated,
        weights: Mapping[str, int] = EVEN,
        ignored: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._state = state
        self._scorer = scorer
        self._weights = weights
        self._ignored = ignored
        self._short = Shapes(state, self._lacking)
        self._scores = Shapes(state, self._score)

    def refusals(self, pod: Pod, nodes: Sequence[int]) -> Refusals:
        """Return the nodes without room, and which requests find none."""
        lacking = self._short.by_node(pod)
        found = {index: lacking[index] for index in nodes if lacking[index]}
        return found or NO_REFUSALS

    def _lacking(self, pod: Pod, index: int) -> tuple[str, ...]:
        offered, taken = self._state.nodes[index].allocatable, self._state.requested[index]
        reasons = [TOO_MANY] if taken.get(PODS, 0) + 1 > offered.get(PODS, 0) else []
        for name, amount in pod.spec.requests.items():
            if amount > 0 and amount > offered.get(name, 0) - taken.get(name, 0) and not self._ignored(name):
                reasons.append(_SHORT.get(name) or f"Insufficient {name}")
        return tuple(reasons)

    def scores(self, pod: Pod, nodes: Sequence[int]) -> list[int]:
        """Return what the strategy makes of each node with the pod on it."""
        known = self._scores.by_node(pod)
        return [known[index] for index in nodes]

    def _score(self, pod: Pod, index: int) -> int:
        offered = self._state.nodes[index].allocatable
        amounts = {}
        for name in self._weights:
            if offered.get(name, 0) and (name in _NATIVE or pod.spec.requests.get(name)):
                amounts[name] = (self._requested(pod, index, name), offered[name])
        return self._scorer(amounts, self._weights) if amounts else 0

    def _requested(self, pod: Pod, index: int, name: str) -> int:
        if name in (CPU, MEMORY):
            return self._state.assumed[index][name == MEMORY] + scored_of(pod)[name]
        return self._state.requested[index].get(name, 0) + pod.spec.requests.get(name, 0)
