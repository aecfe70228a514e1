"""The cluster as the scheduler sees it at one point in time, and where it would put a pod then.

Each world has such a cluster (`SharedClusters`); worlds in which the same pods are on the same nodes share one.  For
example, a pod goes for which two nodes are equal.  In worlds 0 and 1 it lands on n2, in world 2 on n3: the third gets a
copy of the cluster, and both follow their own worlds from then on.  If the pod stays after all, that is taken back, and
the three share one cluster again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TypeVar

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import PODS, Resources
from rebalancer.cluster.taints import Taint
from rebalancer.scheduling.simulator.answer import Answer
from rebalancer.scheduling.simulator.nodes import Nodes
from rebalancer.scheduling.simulator.sampling import SamplingWindow, circle_from
from rebalancer.scheduling.simulator.simulator import Simulator
from rebalancer.scheduling.simulator.state import State

T = TypeVar("T")


class SimulatedCluster:
    """One point in time: the state, in which pods come and go, and the scheduler that looks at it.

    Args:
        state: the cluster.
        scheduler: returns the scheduler that looks at a state.
    """

    def __init__(self, state: State, scheduler: Callable[[State], Simulator]) -> None:
        self._state = state
        self._scheduler = scheduler
        self._simulator = scheduler(state)

    def copy(self) -> "SimulatedCluster":
        """Return the cluster as it is now, to follow it elsewhere."""
        return SimulatedCluster(self._state.copy(), self._scheduler)

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

    def look(self, node: str, there: Pod | None, meanwhile: Pod | None, question: Callable[[Simulator], T]) -> T:
        """Return what the scheduler answers about a pod that comes in place of another one.

        Args:
            node: the node of the pod that it replaces.
            there: the replaced pod as the state has it now: running, terminating, or None.
            meanwhile: the replaced pod as it is when the new one comes: terminating, or None.
            question: asks the scheduler.
        """
        self.exchange(node, there, meanwhile)
        try:
            return question(self._simulator)
        finally:
            self.exchange(node, meanwhile, there)

    def first(self, names: Iterable[str], window: SamplingWindow) -> str:
        """Return which of some nodes the scheduler comes to first if it begins to look there."""
        order, index = self._state.orders[window.order], self._state.index
        tied = Nodes(sorted(index[name] for name in names))
        return self._state.names[int(circle_from(order, window.start, tied)[0])]

    def spare(self, node: str, requests: Resources) -> dict[str, int]:
        """Return what is left of a node once a pod has what it requests there; only of what it requests, and slots."""
        index, asked = self._state.index[node], {PODS: 1, **{name: each for name, each in requests.items() if each}}
        rooms = {name: self._state.room(name) for name in asked}
        return {name: int(offered[index] - taken[index]) - asked[name] for name, (offered, taken) in rooms.items()}

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


#: What happens in a world: on a node a pod goes and another one comes, or nothing does.
Exchange = tuple[str, Pod | None, Pod | None] | None

_FIRST = 32


class _Followed:
    """A simulated cluster, and the exchanges that were made in it since the start."""

    __slots__ = ("made", "simulated")

    def __init__(self, simulated: SimulatedCluster) -> None:
        self.simulated = simulated
        self.made: dict[tuple[str, Pod | None, Pod | None], None] = {}  # in order

    def make(self, exchange: Exchange) -> None:
        if exchange:
            self.simulated.exchange(*exchange)
            self.made[exchange] = None

    def take_back(self, exchange: Exchange) -> None:
        if exchange:
            node, goes, comes = exchange
            self.simulated.exchange(node, comes, goes)
            del self.made[exchange]

    def likeness(self, other: "_Followed") -> int:
        """Return how many of the first exchanges the other one has made too: they tell whether old pods have ended."""
        return sum(each in other.made for each in islice(self.made, _FIRST))

    def become(self, other: "_Followed") -> None:
        """Make what the other one has made, and nothing else."""
        for exchange in [each for each in reversed(self.made) if each not in other.made]:
            self.take_back(exchange)
        for exchange in [each for each in other.made if each not in self.made]:
            self.make(exchange)


class SharedClusters:
    """The simulated cluster of each world.

    Args:
        simulated: the cluster of all worlds as they begin.
        count: how many worlds there are.
    """

    def __init__(self, simulated: SimulatedCluster, count: int) -> None:
        self._clusters = [_Followed(simulated)] * count
        self._spare: list[_Followed] = []  # a copy costs more than to make some exchanges anew
        self._steps: list[tuple[object, list[_Followed]]] = []  # the latest ones, each with the clusters before it

    def __getitem__(self, number: int) -> SimulatedCluster:
        return self._clusters[number].simulated

    def suppose(self, taints: Mapping[str, Sequence[Taint]]) -> None:
        """Assume these soft taints in each cluster (see `SimulatedCluster.suppose`)."""
        for each in {*self._clusters, *self._spare}:
            each.simulated.suppose(taints)

    def make(self, step: object, exchanges: Sequence[Exchange]) -> None:
        """Make a step, which is an exchange in each world.  Worlds that differ from now on part."""
        before, after = self._clusters, dict[tuple[_Followed, Exchange], _Followed]()
        kept: set[_Followed] = set()
        for each in zip(before, exchanges, strict=True):
            if each not in after:
                after[each] = self._copy(each[0]) if each[0] in kept else each[0]
                kept.add(each[0])
        for (_, exchange), cluster in after.items():
            cluster.make(exchange)
        self._clusters = [after[each] for each in zip(before, exchanges, strict=True)]
        self._steps.append((step, before))

    def take_back(self, step: object, exchanges: Sequence[Exchange]) -> None:
        """Take a step back; if it was the latest one, worlds that it parted are together again."""
        for cluster, exchange in dict(zip(self._clusters, exchanges, strict=True)).items():
            cluster.take_back(exchange)
        if self._steps and self._steps[-1][0] == step:
            after, self._clusters = self._clusters, self._steps.pop()[1]
            self._spare += dict.fromkeys(each for each in after if each not in self._clusters)
        else:
            self._steps.clear()

    def _copy(self, cluster: _Followed) -> _Followed:
        if self._spare:
            spare = max(self._spare, key=cluster.likeness)
            self._spare.remove(spare)
            spare.become(cluster)
            return spare
        new = _Followed(cluster.simulated.copy())
        new.made = dict(cluster.made)
        return new
