"""Relief: bring full nodes within their targets with few moves, each of a pod that some destination takes.

On each node the pod goes that brings it within target with the least left over, or, if none does, the one that leaves
the least; but never a costly one (see `rebalancer.eviction.order`) before a cheaper one that helps, pods of Jobs last
among their like, and never one that takes less than a tenth of the first excess without bringing the node within
target.  Ties go by age, oldest first, then namespace and name.

An example: targets are 50 % of cpu; n1 uses 75 %, n2 60 %.  n1 is 25 points above and goes first.  Pods of 30, 20 and 6
points may leave it: 30 brings it to 45 %.  If the one of 30 has no destination, 20 goes and leaves 5; then 6 goes and
n1 is at 49 %.  Then n2.
"""

from collections.abc import Iterable, Iterator, Sequence

from rebalancer.balancing.candidates import Candidate, choose
from rebalancer.balancing.excess import Excess
from rebalancer.balancing.moves import Moves, Purpose, node_is_spent
from rebalancer.balancing.utilization import NodeUtilization, Percentages
from rebalancer.eviction.causes import Code, cause

_NAMED = 5  # nodes that stay over and are warned of by name


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

    def warn(self, sources: Iterable[NodeUtilization]) -> None:
        """Tell which nodes stay above their targets, as far as that is known."""
        over = furthest_first(sources, self._purpose.targets) if self._moves.pods_known else []
        for source in over[:_NAMED]:
            self._moves.warn(cause(Code.STAYS_OVER, **self._purpose.reason(source).figures))
        if len(over) > _NAMED:
            self._moves.warn(cause(Code.MORE_STAY_OVER, nodes=len(over) - _NAMED))

    def _relieve(self, source: NodeUtilization) -> None:
        """Evict pods of one node until it is within its targets or no pod that may go helps any more."""
        for candidate in self._choices(source):
            if self._moves.is_spent(source) or node_is_spent(self._moves.move(candidate, source, self._purpose)):
                return

    def _choices(self, source: NodeUtilization) -> Iterator[Candidate]:
        """Yield the best candidate for what is above target at that moment, as long as something is."""
        excess = source.above(self._purpose.targets)
        if not excess.points:
            return
        # A tenth of the first excess is what a pod must take at least, also in a second run.
        first = self._first_excess.setdefault(source.node.name, excess.total)
        for group in self._moves.groups(source, self._purpose):
            while best := self._best(group, source.above(self._purpose.targets), first):
                group.remove(best)
                yield best

    def _best(self, group: Sequence[Candidate], excess: Excess, first: float) -> Candidate | None:
        # Without the usage of pods nobody knows which helps most: the oldest goes.
        return choose(group, excess, first) if self._moves.pods_known else next(iter(group), None)


def furthest_first(sources: Iterable[NodeUtilization], targets: Percentages) -> list[NodeUtilization]:
    """Return the nodes above their targets, the one furthest above first, equal ones by name."""
    above = [source for source in sources if source.above(targets).points]
    return sorted(above, key=lambda each: (-each.above(targets).total, each.node.name))
