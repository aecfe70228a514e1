"""On which nodes the pods of a node may land, and which nodes are avoided meanwhile.

With steering a few nodes receive and all others are avoided: with two soft taints the nodes that are empty or about to
be, with one the others; if that is not enough, since siblings or affinities outweigh one taint, all with two.  At first
as few receive as have room for all pods; if the scheduler does not place all pods well there, twice as many, and so on
up to sixteen times.  What cannot be emptied so is tried again at the end, with all nodes in use.

An example: n1 is to be emptied of 15 points.  n5 has room for 10 points, n4 for 20, n3 and n2 for 30.  The pods may go
to n5 and n4, while n1 has two soft taints, n2 and n3 one each.  If the scheduler would fill n5 above its ceiling, they
may go to n5, n4, n3 and n2, and only n1 is avoided.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rebalancer.balancing.destinations import Destinations
from rebalancer.balancing.steering.foresight import Avoid, Foresight, avoiding_others, takes_pods
from rebalancer.balancing.utilization import NodeUtilization, Percentages
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Owner, Pod
from rebalancer.cluster.resources import Resources, add
from rebalancer.eviction.causes import Code
from rebalancer.eviction.steering import Move, Steer
from rebalancer.eviction.verdict import Refused, refused

_Key = tuple[str, Owner | None]


def _key(pod: Pod) -> _Key:
    return (pod.namespace, pod.controller)


#: One pod that has to stay on its node, and so keeps all others there; and why it stays.
Kept = tuple[Pod, Refused]

_GROWTH = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to empty a node."""

    barred: Collection[str]  # on which nodes none of its pods may land
    # On which nodes they should land, any of them; empty if that is the scheduler's business.
    destinations: tuple[str, ...] = ()
    avoid: Avoid = field(default_factory=dict)  # by name, how many soft taints nodes carry meanwhile


class SteeredPlacement:
    """Replacements go to nodes of our choice, as far as the scheduler follows.

    Those that have received pods already come first, then those that are not to be emptied, the fullest one first, and
    then those that would be emptied last; nodes that others have given soft taints never receive.
    """

    def __init__(
        self,
        cluster: Cluster,
        used: Iterable[NodeUtilization],  # the nodes in use
        candidates: Sequence[NodeUtilization],  # those to be emptied, in this order
        destinations: Destinations,
        ceilings: Percentages,
        steer: Steer,
    ) -> None:
        self._open = [node.name for node in cluster.nodes if not node.unschedulable]
        emptied = {each.node.name for each in candidates}
        others = [each for each in used if each.node.name not in emptied]
        fullest = sorted(others, key=lambda each: (-each.fullness, each.node.name))
        last = [each for each in reversed(candidates) if not each.node.unschedulable]
        self._takers = [each.node for each in (*fullest, *last) if takes_pods(each.node)]
        self._destinations = destinations
        self._ceilings = ceilings
        self.steer, self.foresight = steer, Foresight(cluster, steer.keys)
        self._replicas: dict[_Key, Counter[str]] = {}  # how many pods of each owner are on each node
        for pod in cluster.pods():
            self._count(pod, pod.node, 1)
        cluster.follow(self)

    def of(
        self, node: Node, usage: Sequence[Resources], empty: Collection[str], received: Collection[str], *, wide: bool
    ) -> Iterator[Choice]:
        """Yield choices to empty a node of pods with this usage, the largest first; few destinations unless wide."""
        hot = frozenset((*empty, node.name))
        ranked = sorted(self._takers, key=lambda each: each.name not in received)
        others = [self._destinations.on(each) for each in ranked if each.name not in hot]
        able = [each for each in others if each.passed(usage[0], self._ceilings) is None]
        names = tuple(each.node.name for each in able)
        if wide:
            yield Choice(hot, names, avoiding_others(self._open, names, hot))
            return
        least = self._enough(able, usage)
        for count in sorted({least * each for each in _GROWTH if least * each < len(able)}):
            chosen = names[:count]
            for most in (hot, None):
                avoid = avoiding_others(self._open, chosen, most)
                yield Choice({*hot, *avoid}, chosen, avoid)

    def objection(self, node: Node, moves: Sequence[Move]) -> Kept | None:
        """Return why these moves off a node must not be: all pods of an owner would come from several nodes to one."""
        expected: dict[_Key, set[str]] = {}
        for move in moves:
            expected.setdefault(_key(move.pod), set()).add(move.expected)
        for move in moves:
            if move.pod.controller and self._gathers(node, _key(move.pod), expected[_key(move.pod)]):
                return move.pod, refused(Code.NO_DESTINATION, gathers=move.expected)
        return None

    def _gathers(self, node: Node, owner: _Key, expected: set[str]) -> bool:
        now = {name for name, count in self._replicas.get(owner, Counter()).items() if count > 0}
        return len(now) > 1 and len((now - {node.name}) | expected) == 1

    def left(self, pod: Pod, sign: int) -> None:
        """Count a pod that went, or is back."""
        self._count(pod, pod.node, -sign)

    def came(self, pod: Pod, node: Node, sign: int) -> None:
        """Count a pod that is expected on a node, or is not any more."""
        self._count(pod, node.name, sign)

    def _count(self, pod: Pod, name: str, sign: int) -> None:
        if pod.active and not pod.terminating:
            self._replicas.setdefault(_key(pod), Counter())[name] += sign

    def _enough(self, able: Sequence[NodeUtilization], usage: Sequence[Resources]) -> int:
        """Return how many of the first nodes have room for all these pods, added up; all, if that is not enough."""
        wanted: dict[str, int] = {}
        for amounts in usage:
            add(wanted, amounts)
        room: dict[str, int] = {}
        for count, each in enumerate(able, start=1):
            add(room, each.headroom(self._ceilings))
            if all(amount >= wanted.get(name, 0) for name, amount in room.items()):
                return count
        return len(able)
