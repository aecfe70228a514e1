"""What the scheduler would do with a pod while nodes carry our soft taints, by the simulator."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.taints import PREFER_NO_SCHEDULE, Taint
from rebalancer.scheduling.any_order import AnyOrder
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.answer import Answer

#: By name of the node, the number of its soft taints.
Avoid = Mapping[str, int]

_TAINTS = "TaintToleration"


class Foresight:
    """Asks the simulator, which follows the cluster.

    Args:
        cluster: the cluster.
        keys: the keys of the soft taints.
    """

    def __init__(self, cluster: Cluster, keys: tuple[str, str]) -> None:
        self._cluster = cluster
        self._simulation = cluster.index(Simulation)
        self._held = frozenset(node.name for node in cluster.snapshot.nodes if node.held_until is not None)
        self._taints = [tuple(Taint(key, "", PREFER_NO_SCHEDULE) for key in keys[:level]) for level in range(3)]

    @property
    def notices(self) -> Sequence[str]:
        """Texts that say what stands in for objects that were not read."""
        return self._simulation.notices

    @contextmanager
    def avoiding(self, avoid: Avoid) -> Iterator[None]:
        """Answer within this context as if these nodes carried so many of our taints.

        The one that holds a node counts: the simulator knows it already.
        """
        more = {name: level - (name in self._held) for name, level in avoid.items()}
        with self._simulation.tainted({name: self._taints[level] for name, level in more.items() if level > 0}):
            yield

    def ask(self, pod: Pod) -> Answer:
        """Return where the replacement of a pod would go."""
        return self._simulation.ask(pod)

    def in_any_order(self, pods: Sequence[Pod]) -> Iterator[Answer]:
        """Yield where each of these would go, whatever the others of them have done by then."""
        any_order = self._cluster.index(AnyOrder)
        with any_order.among(frozenset(pods)):
            yield from map(any_order.ask, pods)


def total(answer: Answer, name: str) -> int | None:
    """Return what a node scores for a pod, None where the pod cannot go."""
    scores = answer.scores(name)
    return sum(scores.values()) if scores else None


def untainted_total(answer: Answer, name: str, destination: str) -> int | None:
    """Return a node's score without our taints, estimated: with the destination's score for taints."""
    scores = answer.scores(name)
    if not scores:
        return None
    lost = answer.scores(destination).get(_TAINTS, 0) - scores.get(_TAINTS, 0)
    return sum(scores.values()) + lost
