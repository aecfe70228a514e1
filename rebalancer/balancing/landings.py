"""Where replacements land, as far as it is known."""

from collections.abc import Iterator

from rebalancer.cluster.pod import Pod
from rebalancer.eviction.evict import Evict
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.answer import Answer

ROOM_DECIDES = "where that decides, a node that has room for a pod is enough to move it"


class Landings:
    """Asks the simulated scheduler, and warns once of each cause for which it does not know.

    Args:
        simulation: the scheduler.
        evict: whom to warn.
    """

    def __init__(self, simulation: Simulation, evict: Evict) -> None:
        self._simulation = simulation
        self._evict = evict

    def of(self, pod: Pod) -> Iterator[Answer]:
        """Yield where the replacement of a pod would land: soon, and once pods that go are gone; each of them counts.

        The last one is unknown if nobody knows.  A pod that could come in only where others are preempted has nowhere
        to go, whatever the scheduler would do.
        """
        for notice in self._simulation.notices:
            self._evict.warn(notice)
        for answer in self._simulation.in_turn(pod):
            if answer.unknown and not answer.reason:
                self._evict.warn(f"{answer.unknown}; {ROOM_DECIDES}")
            yield answer
