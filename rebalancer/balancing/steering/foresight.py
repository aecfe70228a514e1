"""What the scheduler would do with a pod while nodes carry our soft taints, by the simulator."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.taints import PREFER_NO_SCHEDULE, Taint
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.answer import Answer
from rebalancer.scheduling.worlds import Seen, Worlds

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
        self._simulation = cluster.index(Simulation)
        self._worlds = cluster.index(Worlds)
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

    def answers(self, pod: Pod) -> Iterator[Answer]:
        """Yield where it would go soon, and later where that may differ; only the best nodes are named."""
        return self._simulation.answers(pod, best=True)

    def in_worlds(self, pod: Pod) -> Iterator[Seen]:
        """Yield world by world where the replacement lands if the pod goes now (see `Worlds.landings`)."""
        return self._worlds.landings(pod)

    def in_drawn_orders(self, expected: Mapping[Pod, str]) -> Iterator[list[tuple[Pod, Seen]]]:
        """Yield for each drawn order where the replacements of pods that have gone land, in that order."""
        return self._worlds.in_drawn_orders(expected)

    def shares(self, pod: Pod) -> Mapping[str, float]:
        """Return how likely each node is for a pod of which all worlds were looked at, the most likely first."""
        return self._worlds.shares(pod)

    def others_on(self, number: int, node: str, pods: Iterable[Pod]) -> tuple[list[Pod], list[Pod], list[Pod]]:
        """Return whose replacements a node has in one world: more than planned, fewer, and which of these pods'."""
        return *self._worlds.others_on(number, node), self._worlds.landed_on(number, node, pods)

    def landed(self, pods: Iterable[Pod]) -> None:
        """Forget what was drawn for pods: where they are expected next, they have landed."""
        for pod in pods:
            self._worlds.landed(pod)


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
