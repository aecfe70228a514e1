"""The cluster of each world, as its scheduler sees it; worlds in which the same pods are on the same nodes share one.

For example, a pod goes for which two nodes are equal.  In worlds 0 and 1 it lands on n2, in world 2 on n3: the third
gets a copy of the cluster, and both follow their own worlds from then on.  If the pod stays after all, that is taken
back, and the three share one cluster again.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.taints import Taint
from rebalancer.scheduling.simulator.simulator import Simulator

_Made = tuple[str, Pod | None, Pod | None]
#: What happens in a world: on a node a pod goes and another one comes, or nothing does.
Exchange = _Made | None

_FIRST = 32


class _Followed:
    """A simulated cluster, and the exchanges that were made in it since the start."""

    __slots__ = ("made", "simulated")

    def __init__(self, simulated: Simulator, made: Iterable[Exchange]) -> None:
        self.simulated = simulated
        self.made = dict.fromkeys(filter(None, made))  # in order

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

    def copy(self) -> "_Followed":
        return _Followed(self.simulated.copy(), self.made)

    def become(self, made: Collection[_Made]) -> None:
        """Make these exchanges, and nothing else."""
        for exchange in [each for each in reversed(self.made) if each not in made]:
            self.take_back(exchange)
        for exchange in [each for each in made if each not in self.made]:
            self.make(exchange)


class SharedClusters:
    """The simulated cluster of each world: by its history, made from one in which some exchanges were made."""

    def __init__(self, simulated: Simulator, made: Iterable[Exchange], histories: Sequence[Sequence[Exchange]]) -> None:
        start = _Followed(simulated, made)
        different = {each: start.copy() for each in dict.fromkeys(histories)}
        for history, cluster in different.items():
            cluster.become(dict.fromkeys(filter(None, history)))
        self._clusters = [different[each] for each in histories]
        self._spare: list[_Followed] = []  # a copy costs more than to make some exchanges anew
        self._steps: list[tuple[object, list[_Followed]]] = []  # the latest ones, each with the clusters before it

    def __getitem__(self, number: int) -> Simulator:
        return self._clusters[number].simulated

    def suppose(self, taints: Mapping[str, Sequence[Taint]]) -> None:
        """Assume these soft taints in each cluster (see `Simulator.suppose`)."""
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
            spare.become(cluster.made)
            return spare
        return cluster.copy()
