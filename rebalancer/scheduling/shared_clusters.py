"""The cluster of each world, as its scheduler sees it; worlds in which the same pods are on the same nodes share one.

For example, a pod goes for which two nodes are equal.  In worlds 0 and 1 it lands on n2, in world 2 on n3: the third
gets a copy of the cluster, and both follow their own worlds from then on.  If the pod stays after all, that is taken
back, and the three share one cluster again.
"""

from collections.abc import Mapping, Sequence
from itertools import islice

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.taints import Taint
from rebalancer.scheduling.simulator.simulator import Simulator

#: What happens in a world: on a node a pod goes and another one comes, or nothing does.
Exchange = tuple[str, Pod | None, Pod | None] | None

_FIRST = 32


class _Followed:
    """A simulated cluster, and the exchanges that were made in it since the start."""

    __slots__ = ("made", "simulated")

    def __init__(self, simulated: Simulator) -> None:
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
    """The simulated cluster of each of so many worlds, which begin with the same."""

    def __init__(self, simulated: Simulator, count: int) -> None:
        self._clusters = [_Followed(simulated)] * count
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
            spare.become(cluster)
            return spare
        new = _Followed(cluster.simulated.copy())
        new.made = dict(cluster.made)
        return new
