"""On which nodes the pods of a node may land, and which nodes are avoided meanwhile.

Without steering the scheduler decides alone, and only nodes that are empty, or about to be, are barred.

With steering a few nodes receive and all others are avoided: with two soft taints the nodes that are empty or about to
be, with one the others.  Nodes receive in this order: those that have received pods already, those that are not to be
emptied, and then the nodes that would be emptied last.  At first as few as have room for all pods; if the scheduler
does not place all pods well there, twice as many, then four times, then all.

An example: n1 is to be emptied of 15 points.  n5 has room for 10 points, n4 for 20, n3 and n2 for 30.  The pods may go
to n5 and n4, while n1 has two soft taints, n2 and n3 one each.  If the scheduler would fill n5 above its ceiling, they
may go to n5, n4, n3 and n2, and only n1 is avoided.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from rebalancer.balancing.destinations import Destinations
from rebalancer.balancing.steering.foresight import Avoid, Foresight
from rebalancer.balancing.utilization import Percentages
from rebalancer.cluster.node import Node
from rebalancer.cluster.resources import Resources, add
from rebalancer.cluster.taints import PREFER_NO_SCHEDULE
from rebalancer.eviction.steering import HOT, MIDDLING, Landing

_GROWTH = (1, 2, 4)


@dataclass(frozen=True, slots=True)
class Way:
    """One way to empty a node.

    Attributes:
        barred: on which nodes none of its pods may land.
        avoid: by name, how many soft taints nodes carry meanwhile.
    """

    barred: Collection[str]
    avoid: Avoid = field(default_factory=dict)


class Unsteered:
    """The scheduler places replacements as it likes."""

    def of(self, node: Node, usage: Sequence[Resources], empty: Collection[str]) -> Iterator[Way]:  # noqa: ARG002  as Steering
        """Yield the one way: no pod may land on a node that is empty, or about to be."""
        yield Way({*empty, node.name})

    def avoiding(self, way: Way) -> AbstractContextManager[None]:  # noqa: ARG002  as in Steering
        """Change nothing."""
        return nullcontext()

    def occupied_by(self, landing: Landing) -> Collection[str]:
        """Return the nodes on which a replacement may run: all that were likely, as nobody has looked."""
        return landing.move.likely


class Steering:
    """Replacements go to nodes of our choice, as far as the scheduler follows.

    Args:
        nodes: all nodes of the cycle.
        receivers: those that may receive, those that should do so first; without nodes that others have given soft
            taints: they want them to receive nothing.
        destinations: knows how much room they have.
        ceilings: up to which percentage.
        foresight: what the scheduler would do.
    """

    def __init__(
        self,
        nodes: Iterable[Node],
        receivers: Iterable[Node],
        destinations: Destinations,
        ceilings: Percentages,
        foresight: Foresight,
    ) -> None:
        self._open = [node.name for node in nodes if not node.unschedulable]
        self._receivers = [node for node in receivers if _takes_pods(node)]
        self._destinations = destinations
        self._ceilings = ceilings
        self._foresight = foresight
        self._received: set[str] = set()

    def of(self, node: Node, usage: Sequence[Resources], empty: Collection[str]) -> Iterator[Way]:
        """Yield ways, from few receivers to all.

        Args:
            node: the node to be emptied.
            usage: of each of its pods, the largest first.
            empty: names of the nodes that are empty.
        """
        hot = {*empty, node.name}
        able = [each for each in self._ranked() if each.name not in hot and self._has_room(each, usage[0])]
        least = self._enough(able, usage)
        for count in sorted({min(least * each, len(able)) for each in _GROWTH} | {len(able)}):
            chosen = {each.name for each in able[:count]}
            others = [name for name in self._open if name not in chosen]
            barred = {*hot, *others} if count < len(able) else hot
            yield Way(barred, {name: HOT if name in hot else MIDDLING for name in others})

    def avoiding(self, way: Way) -> AbstractContextManager[None]:
        """Answer within this context as if the nodes of a way were avoided."""
        return self._foresight.avoiding(way.avoid)

    def occupied_by(self, landing: Landing) -> Collection[str]:
        """Return the node where a replacement runs; it is a receiver before others from now on."""
        if landing.node is None:
            return ()
        self._received.add(landing.node)
        return (landing.node,)

    def _ranked(self) -> list[Node]:
        return sorted(self._receivers, key=lambda each: each.name not in self._received)

    def _has_room(self, node: Node, usage: Resources) -> bool:
        return self._destinations.on(node).passed(usage, self._ceilings) is None

    def _enough(self, able: Sequence[Node], usage: Sequence[Resources]) -> int:
        """Return how many of the first nodes have room for all these pods, added up; all, if that is not enough."""
        wanted: dict[str, int] = {}
        for amounts in usage:
            add(wanted, amounts)
        room: dict[str, int] = {}
        for count, node in enumerate(able, start=1):
            add(room, self._destinations.on(node).headroom(self._ceilings))
            if all(amount >= wanted.get(name, 0) for name, amount in room.items()):
                return count
        return len(able)


def _takes_pods(node: Node) -> bool:
    return not any(taint.effect == PREFER_NO_SCHEDULE for taint in node.taints)
