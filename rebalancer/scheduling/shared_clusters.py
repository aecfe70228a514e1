"""The cluster of each world, as its scheduler sees it; worlds in which the same pods are on the same nodes share one.

For example, a pod lands on n2 in worlds 0 and 1, and on n3 in world 2, which gets a copy of the cluster.  If the pod
stays after all, that is taken back, and the three share one cluster again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
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

    def __init__(self, simulated: Simulator, made: Iterable[Exchange] = ()) -> None:
        self.simulated = simulated
        self.made = dict.fromkeys(made)  # in order

    def make(self, exchange: Exchange, sign: int) -> None:
        """Make an exchange (1), or take it back (-1)."""
        if exchange and sign > 0:
            self.simulated.exchange(*exchange)
            self.made[exchange] = None
        elif exchange:
            node, goes, comes = exchange
            self.simulated.exchange(node, comes, goes)
            del self.made[exchange]

    def likeness(self, other: "_Followed") -> int:
        """Return how many of the first exchanges the other one has made too: they tell whether old pods have ended."""
        return sum(each in other.made for each in islice(self.made, _FIRST))

    def become(self, other: "_Followed") -> None:
        """Make the exchanges of another one, and nothing else."""
        for exchange in [each for each in reversed(self.made) if each not in other.made]:
            self.make(exchange, -1)
        for exchange in [each for each in other.made if each not in self.made]:
            self.make(exchange, 1)


class SharedClusters:
    """The simulated cluster of each of so many worlds, made from one that was read."""

    def __init__(self, read: Callable[[], Simulator], size: int) -> None:
        self._read = read
        self._size = size
        self._clusters: list[_Followed] = []  # none until one is asked for
        self._spare: list[_Followed] = []  # a copy costs more than to make some exchanges anew
        self._steps: list[tuple[object, list[_Followed]]] = []  # the latest ones, each with the clusters before it
        self._due: list[tuple[object, int, Sequence[Exchange]]] = []  # steps that are not taken yet

    def __getitem__(self, number: int) -> Simulator:
        self._clusters = self._clusters or [_Followed(self._read())] * self._size
        for step, sign, exchanges in self._due:
            (self._make if sign > 0 else self._take_back)(step, exchanges)
        self._due.clear()
        return self._clusters[number].simulated

    def suppose(self, taints: Mapping[str, Sequence[Taint]]) -> None:
        """Assume these soft taints in each cluster (see `Simulator.suppose`)."""
        for each in {*self._clusters, *self._spare}:
            each.simulated.suppose(taints)

    def note(self, step: object, sign: int, exchanges: Sequence[Exchange]) -> None:
        """Make a step (1), an exchange in each world, or take it back (-1), as soon as somebody asks for a cluster.

        Many are tried and taken back before anybody does.  Worlds that differ from then on part.
        """
        if sign < 0 and self._due and self._due[-1][:2] == (step, 1):
            self._due.pop()
        else:
            self._due.append((step, sign, exchanges))

    def _make(self, step: object, exchanges: Sequence[Exchange]) -> None:
        before, after = self._clusters, dict[tuple[_Followed, Exchange], _Followed]()
        kept: set[_Followed] = set()
        for each in zip(before, exchanges, strict=True):
            if each not in after:
                after[each] = self._copy(each[0]) if each[0] in kept else each[0]
                kept.add(each[0])
        for (_, exchange), cluster in after.items():
            cluster.make(exchange, 1)
        self._clusters = [after[each] for each in zip(before, exchanges, strict=True)]
        self._steps.append((step, before))

    def _take_back(self, step: object, exchanges: Sequence[Exchange]) -> None:
        """Take a step back; if it was the latest one, worlds that it parted are together again."""
        for cluster, exchange in dict(zip(self._clusters, exchanges, strict=True)).items():
            cluster.make(exchange, -1)
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
        return _Followed(cluster.simulated.copy(), cluster.made)
