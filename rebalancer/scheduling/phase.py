"""The cluster as the scheduler counts it at one time, and what would become of a pod that comes then."""

from collections.abc import Mapping, Sequence

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.taints import Taint
from rebalancer.scheduling.simulator.answer import Answer
from rebalancer.scheduling.simulator.simulator import Simulator
from rebalancer.scheduling.simulator.state import State


class Phase:
    """One time: a state that pods come to and leave, and the scheduler that looks at it."""

    def __init__(self, state: State, simulator: Simulator) -> None:
        self._state = state
        self._simulator = simulator

    def exchange(self, node: str, goes: Pod | None, comes: Pod | None) -> None:
        """Let a pod leave a node and another come to it; a node that was not read is left out."""
        if goes is not comes and node in self._state.index:
            if goes:
                self._state.remove(goes, node)
            if comes:
                self._state.place(comes, node)

    def ask(self, coming: Pod, node: str, there: Pod | None, meanwhile: Pod | None) -> Answer:
        """Return where a pod would go.

        Args:
            coming: the pod.
            node: that of the pod whose place it takes.
            there: what is there of that pod, if anything.
            meanwhile: what is still there of it when the other comes.
        """
        self.exchange(node, there, meanwhile)
        try:
            return self._simulator.ask(coming)
        finally:
            self.exchange(node, meanwhile, there)

    def suppose(self, taints: Mapping[str, Sequence[Taint]]) -> None:
        """Let nodes have these soft taints, too, instead of those that were supposed before."""
        index = self._state.index
        self._state.soft_taints = {index[name]: each for name, each in taints.items() if name in index}


def either(one: Answer, other: Answer) -> Answer:
    """Return what holds whichever of two answers comes true: all nodes of both, but only if neither has none."""
    if one == other:
        return one
    for answer in (one, other):
        if not answer.known or answer.reason:
            return answer
    return Answer(
        nodes=tuple(sorted({*one.nodes, *other.nodes})),
        feasible=max(one.feasible, other.feasible),
        sampled=one.sampled or other.sampled,
        favourites=lambda: tuple(sorted({*one.likely, *other.likely})),
        scores=one.scores,
    )
