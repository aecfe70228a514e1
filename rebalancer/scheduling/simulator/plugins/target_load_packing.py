"""TargetLoadPacking (Trimaran): nodes are filled up to a target of real cpu usage, and avoided beyond it.

Source: the scheduler-plugins' documentation of Trimaran.  With a target of 40 %, the score rises from 40 at no load to
100 at 40 % load; above that it drops to 40 and falls to 0 at full load.  A container is taken to use its limit, else
its request times 1.5, else one core.  The usage of pods that are too young to be measured is not counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rebalancer.cluster.placement import ContainerCpu
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import CPU
from rebalancer.scheduling.simulator.arithmetic import WHOLE, rounded
from rebalancer.scheduling.simulator.loads import Loads, measured
from rebalancer.scheduling.simulator.state import State


@dataclass(frozen=True, slots=True)
class Target:
    """The plugin's arguments: target in percent, factor for requests, millicores where a container has neither."""

    utilization: int = 40
    multiplier: float = 1.5
    assumed: int = 1000


class TargetLoadPacking:
    """Scores nodes by the cpu that they would use."""

    name = "TargetLoadPacking"

    def __init__(self, state: State, loads: Loads, target: Target = Target()) -> None:
        self._state = state
        self._loads = loads
        self._target = target

    def scores(self, pod: Pod, nodes: Sequence[int]) -> list[int]:
        """Return the scores; a node without figures scores 0.

        Raises:
            UnknownPlacementError: usage is not measured.
        """
        loads = measured(self._loads, self.name)
        asked = predicted(pod, self._target)
        found = []
        for index in nodes:
            node = self._state.nodes[index]
            load, capacity = loads.get(node.name, {}).get(CPU), node.capacity.get(CPU, 0)
            busy = WHOLE * (load.average + asked) / capacity if load and capacity else None
            found.append(0 if busy is None else packed(busy, self._target.utilization))
        return found


def predicted(pod: Pod, target: Target) -> int:
    """Return how much cpu a pod is taken to use, in millicores."""
    return sum(_predicted(each, target) for each in pod.spec.placement.cpus) + pod.spec.placement.overhead_cpu


def _predicted(container: ContainerCpu, target: Target) -> int:
    if container.limit is not None:
        return container.limit
    return target.assumed if container.request is None else rounded(container.request * target.multiplier)


def packed(busy: float, target: int) -> int:
    """Return the score of a node, by how busy it would be in percent."""
    if busy > WHOLE:
        return 0
    if busy <= target:
        return rounded((WHOLE - target) * busy / target + target)
    return rounded(target * (WHOLE - busy) / (WHOLE - target))
