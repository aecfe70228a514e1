"""Where replacements land, by the simulated scheduler."""

from collections.abc import Callable, Iterator

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.eviction.evict import Evict
from rebalancer.scheduling.after_ties import AfterTies
from rebalancer.scheduling.other_orders import OtherOrders
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.answer import Answer

ROOM_DECIDES = "where that decides, a node that has room for a pod is enough to move it"


class Landings:
    """Asks the simulated scheduler, and warns once of each reason why it has no answer.

    Args:
        cluster: the cluster.
        evict: whom to warn.

    Raises:
        ConfigurationError: the scheduler's configuration cannot be read.
    """

    def __init__(self, cluster: Cluster, evict: Evict) -> None:
        self._simulation = cluster.index(Simulation)
        self._after_ties = cluster.index(AfterTies)
        self._other_orders = cluster.index(OtherOrders)
        self._evict = evict

    def of(self, pod: Pod) -> Iterator[Answer]:
        """Yield where a pod's replacement would land: soon, and later, when pods that are going have gone.

        Each answer counts.  The last one is unknown if the scheduler's choice is not known.  A pod that could only come
        in by preempting others has nowhere to go, even if the scheduler would preempt them.
        """
        for notice in self._simulation.notices:
            self._evict.warn(notice)
        for answer in self._simulation.in_turn(pod):
            if answer.unknown and not answer.reason:
                self._evict.warn(f"{answer.unknown}; {ROOM_DECIDES}")
            yield answer

    def in_doubt(self, pod: Pod, goes: Callable[[], bool]) -> tuple[str, ...]:
        """Return the nodes where the replacement may land if earlier ones took other nodes that tied for them.

        Those that follow count it on any of these.  Empty for a pod that stays.  At the end of the cycle the other
        orders are played with it (see `OtherOrders`), unless the scheduler scores only a part of the nodes for it.

        Args:
            pod: a pod whose eviction will be asked for next.
            goes: returns whether it will be granted, as far as that is known; called only where the answer takes long.
        """
        if self._after_ties.tied and not goes():
            return ()
        found = self._after_ties.may_land(pod)
        if found and not self._simulation.ask(pod).sampled:
            self._other_orders.note(pod, found)
        return found

    def is_rough(self, pod: Pod) -> bool:
        """Return whether `in_doubt` named all nodes with room, since too much was possible to try each."""
        return self._after_ties.is_rough(pod)

    def uncertain_on(self, node: Node) -> Iterator[Pod]:
        """Yield the pods whose replacements are expected on a node, but may be on another that tied with it."""
        return self._after_ties.uncertain_on(node)
