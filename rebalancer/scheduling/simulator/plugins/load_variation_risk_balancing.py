"""LoadVariationRiskBalancing (Trimaran): nodes whose usage is low and steady.

Source: the documentation of Trimaran in kubernetes-sigs/scheduler-plugins.  For cpu and for memory:

1. The mean usage of the node by load-watcher, and what the pod requests, as shares.  load-watcher's percentages are
   shares of the node's capacity; the plugin takes them, like the request, for shares of what is allocatable.
2. The standard deviation, to the power of 1 / sensitivity, times the margin; at most 1.
3. The risk is half their sum.

The riskier of the two counts: the score is 100 * (1 - risk).  A resource without figures does not count; a node without
any scores 0.

Example: 30 % with a deviation of 10 %, and a pod that requests a fifth: risk (0.3 + 0.2 + 0.1) / 2 = 0.3, score 70.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rebalancer.cluster.loads import LoadFigure
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import CPU, MEMORY, Resources
from rebalancer.scheduling.simulator.arithmetic import WHOLE, rounded
from rebalancer.scheduling.simulator.loads import DEVIATION, MEAN, SAMPLE, Loads, last
from rebalancer.scheduling.simulator.nodes import Nodes
from rebalancer.scheduling.simulator.shapes import Shapes
from rebalancer.scheduling.simulator.state import State

#: By resource, the type of its figures.
_TYPES = {CPU: "CPU", MEMORY: "Memory"}


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
        self._scores = Shapes(state, self._score, _shape)

    def scores(self, pod: Pod, nodes: Nodes) -> Sequence[int]:
        """Return the scores; a node without figures scores 0.

        Raises:
            UnknownPlacementError: usage is not known.
        """
        return self._scores.of(pod, nodes)

    def _score(self, pod: Pod, nodes: Sequence[int]) -> list[int]:
        loads, requests = self._loads(), requests_of(pod)
        found = (self._state.nodes[index] for index in nodes)
        return [self._on(node, requests, loads.figures.get(node.name, ())) for node in found]

    def _on(self, node: Node, requests: Resources, figures: Sequence[LoadFigure]) -> int:
        scores = [
            self._of(load, requests.get(name, 0), node.allocatable.get(name, 0))
            for name, kind in _TYPES.items()
            if (load := load_of(figures, kind))
        ]
        return rounded(min(scores, default=0))

    def _of(self, load: tuple[float, float], request: int, allocatable: int) -> float:
        """Return the score of one resource; one of which nothing is allocatable scores 0."""
        if allocatable <= 0:
            return 0.0
        # In the scheduler's order, so that rounding is the same.
        used, deviation = (min(max(percent * allocatable / WHOLE, 0.0), allocatable) for percent in load)
        mean = min((used + request) / allocatable, 1.0)
        return (1 - (mean + self._spread(deviation / allocatable)) / 2) * WHOLE

    def _spread(self, deviation: float) -> float:
        """Return what the deviation adds to the risk; a sensitivity of 0 leaves only a deviation of 100 %."""
        sensitivity = self._variation.sensitivity
        power = deviation ** (1 / sensitivity) if sensitivity else float(deviation >= 1)
        return min(power * self._variation.margin, 1.0)


def _shape(pod: Pod) -> object:
    requests = requests_of(pod)
    return requests.get(CPU), requests.get(MEMORY)


def requests_of(pod: Pod) -> Resources:
    """Return what a pod requests as the plugin counts it: no pod-level requests, sidecars as init containers."""
    plain = pod.spec.placement.requests_of_containers
    return pod.spec.requests if plain is None else plain


def load_of(figures: Sequence[LoadFigure], kind: str) -> tuple[float, float] | None:
    """Return mean and standard deviation in percent; None if there is no figure of this type."""
    if all(figure.type != kind for figure in figures):
        return None
    mean = last(figures, kind, (MEAN,))
    if mean is None:
        mean = last(figures, kind, (SAMPLE, ""))
    return mean or 0.0, last(figures, kind, (DEVIATION,)) or 0.0
