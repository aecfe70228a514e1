"""LoadVariationRiskBalancing (Trimaran): nodes whose usage is low and steady.

Source: the scheduler-plugins' documentation of Trimaran.  The risk of a resource is half the sum of the mean usage with
the pod and of the margin times the deviation, both as shares of the capacity; the riskier of cpu and memory counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import CPU, MEMORY
from rebalancer.scheduling.simulator.arithmetic import WHOLE, rounded
from rebalancer.scheduling.simulator.loads import Loads, NodeLoad, measured
from rebalancer.scheduling.simulator.state import State


@dataclass(frozen=True, slots=True)
class Variation:
    """The plugin's arguments: the weight of the deviation, and how strongly small deviations count."""

    margin: float = 1.0
    sensitivity: float = 1.0


class LoadVariationRiskBalancing:
    """Scores nodes by the risk that they are overloaded."""

    name = "LoadVariationRiskBalancing"

    def __init__(self, state: State, loads: Loads, variation: Variation = Variation()) -> None:
        self._state = state
        self._loads = loads
        self._variation = variation

    def scores(self, pod: Pod, nodes: Sequence[int]) -> list[int]:
        """Return the scores; a node without figures scores 0.

        Raises:
            UnknownPlacementError: usage is not measured.
        """
        loads = measured(self._loads, self.name)
        return [self._score(pod, self._state.nodes[index], loads.get(self._state.nodes[index].name)) for index in nodes]

    def _score(self, pod: Pod, node: Node, load: Mapping[str, NodeLoad] | None) -> int:
        if not load:
            return 0
        risks = [
            self._risk(load[name], pod.spec.requests.get(name, 0), node.capacity[name])
            for name in (CPU, MEMORY)
            if name in load and node.capacity.get(name)
        ]
        return rounded((1 - max(risks)) * WHOLE) if risks else 0

    def _risk(self, load: NodeLoad, request: int, capacity: int) -> float:
        mean = _share((load.average + request) / capacity)
        deviation = _share(load.deviation / capacity) ** (1 / self._variation.sensitivity)
        return (mean + _share(self._variation.margin * deviation)) / 2


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)
