"""Where replacements land, by the simulated scheduler."""

from collections.abc import Iterator

from rebalancer.cluster.pod import Pod
from rebalancer.eviction.evict import Evict
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.answer import Answer

ROOM_DECIDES = "where that decides, a node that has room for a pod is enough to move it"


class Landings:
    """Asks the simulated scheduler, and warns once of each reason why it has no answer.

    Args:
        simulation: the scheduler.
        evict: whom to warn.
    """

    def __init__(self, simulation: Simulation, evict: Evict) -> None:
        self._simulation = simulation
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
