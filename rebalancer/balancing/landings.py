"""Where replacements land, by the simulated scheduler."""

from collections.abc import Iterator, Mapping

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.eviction.evict import Evict
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.answer import Answer
from rebalancer.scheduling.worlds import Seen, Worlds


class Landings:
    """Asks the simulated scheduler about the plan, and about what may happen besides.

    Args:
        cluster: the cluster.
        evict: whom to tell what is assumed.

    Raises:
        ConfigurationError: the scheduler's configuration cannot be read.
    """

    def __init__(self, cluster: Cluster, evict: Evict) -> None:
        self._simulation = cluster.index(Simulation)
        self._worlds = cluster.index(Worlds)
        self._evict = evict

    def of(self, pod: Pod) -> Iterator[Answer]:
        """Yield where a pod's replacement would land: soon, and later, when pods that are going have gone.

        Each answer counts.  A pod that could only come in by preempting others has nowhere to go, even if the scheduler
        would preempt them.
        """
        for notice in self._simulation.notices:
            self._evict.warn(notice)
        yield from self._simulation.in_turn(pod)

    def in_worlds(self, pod: Pod) -> Iterator[Seen]:
        """Yield world by world where the replacement lands if the pod goes now (see `Worlds.landings`)."""
        return self._worlds.landings(pod)

    def shares(self, pod: Pod) -> Mapping[str, float]:
        """Return how likely each node is for a pod of which all worlds were looked at, the most likely first."""
        return self._worlds.shares(pod)

    def others_on(self, number: int, node: str) -> tuple[list[Pod], list[Pod]]:
        """Return whose replacements are on a node in one world but not in the plan, and the other way round."""
        return self._worlds.others_on(number, node)
