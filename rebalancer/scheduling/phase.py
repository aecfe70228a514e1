"""The cluster as the scheduler sees it at one point in time, and where it would put a pod then."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import PODS, Resources
from rebalancer.cluster.taints import Taint
from rebalancer.scheduling.simulator.answer import Answer, Weighing
from rebalancer.scheduling.simulator.sampling import SamplingWindow
from rebalancer.scheduling.simulator.simulator import Simulator
from rebalancer.scheduling.simulator.state import State


class Phase:
    """One point in time: the state, in which pods come and go, and the scheduler that looks at it.

    Args:
        state: the cluster.
        scheduler: returns the scheduler that looks at a state.
    """

    def __init__(self, state: State, scheduler: Callable[[State], Simulator]) -> None:
        self._state = state
        self._scheduler = scheduler
        self._simulator = scheduler(state)

    def copy(self) -> "Phase":
        """Return the cluster as it is now, to follow it elsewhere."""
        return Phase(self._state.copy(), self._scheduler)

    def exchange(self, node: str, goes: Pod | None, comes: Pod | None) -> None:
        """Remove a pod from a node or add one to it, or exchange one for itself as it is when it terminates.

        If the node was not read, nothing is done.
        """
        if goes is comes or node not in self._state.index:
            return
        if goes and comes:
            self._state.swap(goes, comes, node)
        elif goes:
            self._state.remove(goes, node)
        elif comes:
            self._state.place(comes, node)

    def ask(
        self,
        coming: Pod,
        node: str,
        there: Pod | None,
        meanwhile: Pod | None,
        window: SamplingWindow | None = None,
        *,
        best: bool = False,
    ) -> Answer:
        """Return where a pod would go.

        Args:
            coming: the pod.
            node: the node of the pod that it replaces.
            there: the replaced pod as the state has it now: running, terminating, or None.
            meanwhile: the replaced pod as it is when the new one comes: terminating, or None.
            window: where the scheduler begins to look; None for anywhere.
            best: whether to name only the best of all nodes (see `Simulator.ask`).
        """
        self.exchange(node, there, meanwhile)
        try:
            return self._simulator.ask(coming, window, best=best)
        finally:
            self.exchange(node, meanwhile, there)

    def weigh(self, coming: Pod, node: str, there: Pod | None, meanwhile: Pod | None) -> Weighing:
        """Return what the scheduler thinks of each node; the arguments are those of `ask`."""
        self.exchange(node, there, meanwhile)
        try:
            return self._simulator.weigh(coming)
        finally:
            self.exchange(node, meanwhile, there)

    def first(self, names: Iterable[str], window: SamplingWindow) -> str:
        """Return which of some nodes the scheduler comes to first if it begins to look there."""
        order = self._state.orders[window.order]
        wanted = {self._state.index[name] for name in names}
        begin = int(window.start * len(order))
        round_trip = chain(islice(order, begin, None), order)
        return self._state.names[next(index for index in round_trip if index in wanted)]

    def spare(self, node: str, requests: Resources) -> dict[str, int]:
        """Return what is left of a node once a pod has what it requests there; only of what it requests, and slots."""
        index, asked = self._state.index[node], {PODS: 1, **{name: each for name, each in requests.items() if each}}
        rooms = {name: self._state.room(name) for name in asked}
        return {name: offered[index] - taken[index] - asked[name] for name, (offered, taken) in rooms.items()}

    def suppose(self, taints: Mapping[str, Sequence[Taint]]) -> None:
        """Assume these soft taints on nodes besides their own; they replace the ones assumed before."""
        index = self._state.index
        self._state.soft_taints = {index[name]: each for name, each in taints.items() if name in index}


def either(one: Answer, other: Answer) -> Answer:
    """Return the nodes of both answers; if one of them is unknown or has no node, the first such answer."""
    if one == other:
        return one
    for answer in (one, other):
        if not answer.known or answer.reason:
            return answer
    return Answer(
        nodes=tuple(sorted({*one.nodes, *other.nodes})),
        feasible=max(one.feasible, other.feasible),
        sampled=one.sampled or other.sampled,
        scores=one.scores,
        totals=one.totals,
    )
