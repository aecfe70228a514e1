"""What the scheduler would do with a pod while nodes carry our soft taints, and which nodes a wave avoids.

Hot nodes carry two soft taints, others one, destinations none.  One taint is worth 300/n points, where n is the most
taints on any scored node.  So nodes with one are 150 points behind the destination, and hot nodes 300.  Where 150
points are not enough (siblings, affinities and images may outweigh them), all nodes but the destination carry two.

A node that is not hot needs no taint if it would lose to the destination without one, with some points to spare: the
wave lowers the destination's score, and the cluster may have changed since it was read.
"""

from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.taints import PREFER_NO_SCHEDULE, Taint
from rebalancer.eviction.steering import HOT, MIDDLING
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.answer import Answer
from rebalancer.scheduling.worlds import Worlds

#: By name of the node, the number of its soft taints.
Avoid = Mapping[str, int]

#: A node counts as behind another one if it is at least so many points behind.
SPARE_POINTS = 10
_TAINTS = "TaintToleration"


class Foresight:
    """Asks the scheduler, while nodes carry soft taints with these keys."""

    def __init__(self, cluster: Cluster, keys: tuple[str, str]) -> None:
        self.simulation = cluster.index(Simulation)  # what the scheduler would do
        self.worlds = cluster.index(Worlds)  # what it would do in possible histories
        self._held = frozenset(node.name for node in cluster.snapshot.nodes if node.held_until is not None)
        self._taints = [tuple(Taint(key, "", PREFER_NO_SCHEDULE) for key in keys[:level]) for level in range(3)]

    def avoiding(self, avoid: Avoid) -> AbstractContextManager[None]:
        """Answer within the block as if nodes carried so many of our taints; the one that holds a node is known."""
        more = {name: level - (name in self._held) for name, level in avoid.items()}
        return self.simulation.tainted({name: self._taints[level] for name, level in more.items() if level > 0})


def takes_pods(node: Node) -> bool:
    """Return whether a node may be a destination: not with soft taints of others, who want it to receive nothing."""
    return not any(taint.effect == PREFER_NO_SCHEDULE for taint in node.taints)


def avoiding_others(nodes: Iterable[str], destinations: Collection[str], hot: Collection[str] | None = None) -> Avoid:
    """Return what avoids all of these nodes but those that receive: hot ones more than others, or without hot all."""
    others = (name for name in nodes if name not in destinations)
    return {name: HOT if hot is None or name in hot else MIDDLING for name in others}


def may_win(answer: Answer, nodes: Iterable[str], spare: int = SPARE_POINTS) -> set[str]:
    """Return which of these nodes would win if they carried no taint, or come so close to the best.

    What a node scores then is estimated: as its score for taints that of the best counts.
    """
    return set(nodes).intersection(answer.close_to_best(_TAINTS, spare))
