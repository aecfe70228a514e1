"""Which nodes a wave avoids: as few as keep its replacements off all nodes but their destination.

Hot nodes carry two soft taints, others one, the destination none.  One taint is worth 300/n points, where n is the most
taints on any scored node.  With two on hot nodes, nodes with one are 150 points behind the destination, and hot nodes
300.  Where 150 points are not enough (siblings, affinities and images may outweigh them), all nodes but the destination
carry two, and are 300 points behind.

A node that is not hot needs no taint if it would lose to the destination without one, with some points to spare: the
wave lowers the destination's score, and the cluster may have changed since it was read.  Nodes without taints take the
pods that others create meanwhile.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from rebalancer.balancing.steering.foresight import total, untainted_total
from rebalancer.eviction.steering import HOT, MIDDLING
from rebalancer.scheduling.simulator.answer import Answer

#: A node counts as behind another one if it is at least so many points behind.
SPARE_POINTS = 10


@dataclass(frozen=True, slots=True)
class Avoidance:
    """How many taints each node carries while pods are sent to one destination."""

    levels: Mapping[str, int]

    @classmethod
    def of(cls, nodes: Iterable[str], hot: frozenset[str], receivers: Collection[str], *, strong: bool) -> "Avoidance":
        """Return what avoids all nodes but those that receive.

        Args:
            nodes: all that pods could go to.
            hot: those that must receive nothing.
            receivers: those that should.
            strong: whether all are avoided alike.
        """
        others = (name for name in nodes if name not in receivers)
        return cls({name: HOT if strong or name in hot else MIDDLING for name in others})

    def without(self, needless: Iterable[str]) -> "Avoidance":
        """Return the same without the taints of some nodes."""
        left_out = frozenset(needless)
        return Avoidance({name: level for name, level in self.levels.items() if name not in left_out})

    def with_former(self, former: Mapping[str, int], receivers: Collection[str]) -> "Avoidance":
        """Return the same with the taints that nodes carry already: all watchers of nodes hear of each change."""
        kept = {name: level for name, level in former.items() if name not in receivers and level}
        return Avoidance({**self.levels, **{name: max(kept[name], self.levels.get(name, 0)) for name in kept}})


def needless(answers: Iterable[Answer], nodes: Iterable[str]) -> set[str]:
    """Return the nodes that would not win in any of these answers if they carried no taint."""
    left = set(nodes)
    for answer in answers:
        left -= may_win(answer, left)
    return left


def may_win(answer: Answer, nodes: Iterable[str], spare: int = SPARE_POINTS) -> set[str]:
    """Return which of these nodes would win if they carried no taint, or come so close to the best."""
    destination = answer.nodes[0]
    least = (total(answer, destination) or 0) - spare
    scores = ((name, untainted_total(answer, name, destination)) for name in nodes)
    return {name for name, score in scores if score is not None and score > least}
