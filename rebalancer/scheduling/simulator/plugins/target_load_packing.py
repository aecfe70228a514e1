"""TargetLoadPacking (Trimaran): nodes are filled up to a target of real cpu usage, and avoided beyond it.

Source: the documentation of Trimaran in kubernetes-sigs/scheduler-plugins.  For each node, in percent of its capacity:

1. What it uses, by load-watcher.  A node without such a figure scores 0.
2. What the pod will use: each container its limit, else its request times 1.5, else one core; and the overhead.
3. The same for pods there that are too young to be measured: bound less than a minute before the end of
   load-watcher's window, or after it.

The score rises from 40 at no use to 100 at the target of 40 %; beyond, it drops to 40 and falls to 0 at full use.

Example: 4 cores of which 10 % are used, and a pod with a request of 400m: 10 + 15 = 25 % score 60 * 25 / 40 + 40 = 78.
A pod with a limit of 1200m was bound there half a minute ago: 25 + 30 = 55 % score 40 * 45 / 60 = 30.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rebalancer.cluster.loads import NodeLoads
from rebalancer.cluster.node import Node
from rebalancer.cluster.placement import ContainerCpu
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import CPU
from rebalancer.scheduling.simulator.arithmetic import WHOLE, rounded
from rebalancer.scheduling.simulator.loads import MEAN, SAMPLE, Loads, last
from rebalancer.scheduling.simulator.nodes import Nodes
from rebalancer.scheduling.simulator.shapes import Shapes
from rebalancer.scheduling.simulator.state import State

_TYPE = "CPU"
#: How long load-watcher's source may take to notice a pod, in seconds.
_NOTICED_AFTER = 60


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
        self._scores = Shapes(state, self._score, self._predicted)

    def scores(self, pod: Pod, nodes: Nodes) -> Sequence[int]:
        """Return the scores; a node without figures scores 0.

        Raises:
            UnknownPlacementError: usage is not known.
        """
        return self._scores.of(pod, nodes)

    def _predicted(self, pod: Pod) -> int:
        return predicted(pod, self._target)

    def _score(self, pod: Pod, nodes: Sequence[int]) -> list[int]:
        loads, asked = self._loads(), self._predicted(pod)
        return [self._of(index, asked, loads) for index in nodes]

    def _of(self, index: int, asked: int, loads: NodeLoads) -> int:
        node = self._state.nodes[index]
        percent = last(loads.figures.get(node.name, ()), _TYPE, (MEAN, SAMPLE))
        if percent is None:
            return 0
        busy = _busy(node, percent, asked + self._young(index, loads.ended))
        return packed(busy, self._target.utilization)

    def _young(self, index: int, ended: datetime) -> int:
        """Return how much cpu the pods of a node are taken to use that are not measured yet, in millicores."""
        name, latest = self._state.names[index], int(ended.timestamp()) - _NOTICED_AFTER
        return sum(self._predicted(pod) for pod in self._state.residents[index] if is_young(pod, name, latest))


def is_young(pod: Pod, node: str, latest: int) -> bool:
    """Return whether a pod came to a node after a time, in seconds since 1970; a pod that is expected there did."""
    return pod.node != node or int(pod.bound.timestamp()) > latest


def _busy(node: Node, percent: float, more: int) -> float:
    """Return how much of a node's cpu is used with so many millicores more, in percent; in the scheduler's order."""
    capacity = float(node.capacity.get(CPU, 0))
    return WHOLE * (percent / WHOLE * capacity + more) / capacity if capacity else 0.0


def predicted(pod: Pod, target: Target) -> int:
    """Return how much cpu a pod is taken to use, in millicores."""
    return sum(_predicted(each, target) for each in pod.spec.placement.cpus) + pod.spec.placement.overhead_cpu


def _predicted(container: ContainerCpu, target: Target) -> int:
    if container.limit is not None:
        return container.limit
    return target.assumed if container.request is None else rounded(container.request * target.multiplier)


def packed(busy: float, target: int) -> int:
    """Return the score of a node, by how busy it would be in percent."""
    if busy <= target:
        return rounded((WHOLE - target) * busy / target + target)
    return 0 if busy > WHOLE else rounded(target * (WHOLE - busy) / (WHOLE - target))
