"""The clusters of some histories of a cycle: those in which the same pods are on the same nodes share one.

For example, a pod goes for which two nodes are equal.  In worlds 0 and 1 it lands on n2, in world 2 on n3: the third
gets a copy of the cluster, and both follow their own worlds from then on.  If the pod stays after all, that is taken
back, and the three share one cluster again.
"""

from collections.abc import Mapping, Sequence

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.taints import Taint
from rebalancer.scheduling.phase import Phase

#: What happens in a world: on a node a pod goes and another one comes, or nothing does.
Exchange = tuple[str, Pod | None, Pod | None] | None


class SharedPhases:
    """The phase of each world.

    Args:
        phase: the cluster of all worlds as they begin.
        count: how many worlds there are.
    """

    def __init__(self, phase: Phase, count: int) -> None:
        self._phases = [phase] * count
        self._steps: list[tuple[object, list[Phase]]] = []  # the latest ones, each with the phases before it

    def __getitem__(self, number: int) -> Phase:
        return self._phases[number]

    def suppose(self, taints: Mapping[str, Sequence[Taint]]) -> None:
        """Assume these soft taints in each cluster (see `Phase.suppose`)."""
        for phase in {id(each): each for each in self._phases}.values():
            phase.suppose(taints)

    def make(self, step: object, exchanges: Sequence[Exchange]) -> None:
        """Make a step, which is an exchange in each world.  Worlds that differ from now on part."""
        before, phases = self._phases, dict[tuple[int, Exchange], Phase]()
        kept: set[int] = set()
        for phase, exchange in zip(before, exchanges, strict=True):
            if (id(phase), exchange) not in phases:
                phases[id(phase), exchange] = phase.copy() if id(phase) in kept else phase
                kept.add(id(phase))
        for (_, exchange), phase in phases.items():
            if exchange:
                phase.exchange(*exchange)
        self._phases = [phases[id(phase), exchange] for phase, exchange in zip(before, exchanges, strict=True)]
        self._steps.append((step, before))

    def take_back(self, step: object, exchanges: Sequence[Exchange]) -> None:
        """Take a step back; if it was the latest one, worlds that it parted are together again."""
        after = self._phases
        if self._steps and self._steps[-1][0] == step:
            self._phases = self._steps.pop()[1]
        else:
            self._steps.clear()
        kept = {id(each) for each in self._phases}
        done: set[int] = set()
        for phase, exchange in zip(after, exchanges, strict=True):
            if exchange and id(phase) in kept and id(phase) not in done:
                node, goes, comes = exchange
                phase.exchange(node, comes, goes)
            done.add(id(phase))
