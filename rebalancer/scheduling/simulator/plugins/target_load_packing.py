"""TargetLoadPacking (Trimaran): nodes are filled up to a target of real cpu usage, and spared beyond it.

Source: the scheduler-plugins' documentation of Trimaran.  The score rises from the target at no load to 100 at the
target, falls to where the target's complement was, and to 0 at full load.  A pod is taken to use its limits, else its
requests times 1.5, else one core.  What pods use that came too late to be measured is not known here.
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
    """The plugin's arguments: percent, times, and millicores."""

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
            UnknownPlacementError: nobody measures.
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
    """Return the score of a node that would be so busy, in percent."""
    if busy > WHOLE:
        return 0
    if busy <= target:
        return rounded((WHOLE - target) * busy / target + target)
    return rounded(target * (WHOLE - busy) / (WHOLE - target))
