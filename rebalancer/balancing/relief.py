"""Relief: bring full nodes within their targets with few moves, each of a pod that some destination takes.

1. The node furthest above its targets comes first, then the others.
2. Of its pods the cheapest class is tried first (see `rebalancer.eviction.evict`); in a class, pods of Jobs are last.
3. In a class the pod goes that brings the node within target and takes the least beyond that.  If none does, the pod
   goes that leaves the least above target.  Ties go by age, oldest first, then namespace and name.  A pod that does not
   bring the node within target has to take at least a tenth of the node's first excess, unless the number of pods is
   above target: each pod takes one of that.
4. A pod without a destination stays, and the next best is tried, until the node is within its targets, no pod helps, or
   the node may lose no more.

An example: targets are 50 % of cpu; n1 uses 75 %, n2 60 %.  n1 is 25 points above and goes first.  Pods of 30, 20 and 6
points may leave it.  The pod of 30 brings n1 to 45 %.  If it has no destination, the pod of 20 goes and leaves 5 points
above; then the pod of 6 goes, and n1 is at 49 %.  Then n2 follows.
"""

from collections.abc import Iterable, Iterator, Sequence

from rebalancer.balancing.candidates import Candidate, choose
from rebalancer.balancing.cause_details import why_relieved
from rebalancer.balancing.moves import Moves, Purpose, node_is_spent
from rebalancer.balancing.utilization import Excess, NodeUtilization, Percentages
from rebalancer.eviction.causes import Cause, Code, cause

_NAMED = 5  # nodes that stay over and are warned of by name
_DECIMALS = 9  # smaller differences are floating-point noise: equal nodes go by name


class Relief:
    """Takes pods off nodes above their targets.

    Args:
        moves: what makes the moves.
        targets: by resource, above which percentage a node loses pods.
    """

    def __init__(self, moves: Moves, targets: Percentages) -> None:
        self._moves = moves
        self._purpose = Purpose(targets)
        self._first_excess: dict[str, float] = {}

    def run(self, sources: Iterable[NodeUtilization]) -> None:
        """Relieve nodes, the one furthest above its targets first.

        Raises:
            CycleOver: see `Evict`.
        """
        for source in furthest_first(sources, self._purpose.targets):
            self._relieve(source)

    def _relieve(self, source: NodeUtilization) -> None:
        """Evict pods of one node until it is within its targets or no pod that may go helps any more."""
        for candidate in self._choices(source):
            if self._moves.is_spent(source):
                return
            verdict = self._moves.move(candidate, source, self._purpose)
            if node_is_spent(verdict):
                return

    def _choices(self, source: NodeUtilization) -> Iterator[Candidate]:
        """Yield the best candidate, one after the other, while the node is above target."""
        excess = source.above(self._purpose.targets)
        if not excess.points:
            return
        # A tenth of it is what a pod must take at least, also in a second run.
        first = self._first_excess.setdefault(source.node.name, excess.beside_pods)
        for group in self._moves.groups(source, self._purpose):
            while best := self._best(group, source.above(self._purpose.targets), first):
                group.remove(best)
                yield best

    def _best(self, group: Sequence[Candidate], excess: Excess, first: float) -> Candidate | None:
        # If the usage of pods is not known, neither is which one helps most: the oldest goes.
        return choose(group, excess, first) if self._moves.pods_known else next(iter(group), None)


def furthest_first(sources: Iterable[NodeUtilization], targets: Percentages) -> list[NodeUtilization]:
    """Return the nodes above their targets, the one furthest above first, equal ones by name."""
    above = [source for source in sources if source.above(targets).points]
    return sorted(above, key=lambda each: (-round(each.above(targets).total, _DECIMALS), each.node.name))


def staying_over(sources: Iterable[NodeUtilization], targets: Percentages) -> Iterator[Cause]:
    """Yield a warning for each of the first nodes that stay above their targets, and one for all others."""
    over = furthest_first(sources, targets)
    for source in over[:_NAMED]:
        yield cause(Code.STAYS_OVER, **why_relieved(source, targets, filling=False).details)
    if len(over) > _NAMED:
        yield cause(Code.MORE_STAY_OVER, nodes=len(over) - _NAMED)
