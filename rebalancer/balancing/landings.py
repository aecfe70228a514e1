"""Where replacements land, as far as it is known."""

from rebalancer.cluster.pod import Pod
from rebalancer.eviction.evict import Evict
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.answer import Answer


class Landings:
    """Asks the simulated scheduler, and warns once of each cause for which it does not know.

    Args:
        simulation: the scheduler.
        evict: whom to warn.
    """

    def __init__(self, simulation: Simulation, evict: Evict) -> None:
        self._simulation = simulation
        self._evict = evict

    def of(self, pod: Pod) -> Answer | None:
        """Return where the replacement of a pod would land; None if nobody knows."""
        for notice in self._simulation.notices:
            self._evict.warn(notice)
        answer = self._simulation.ask(pod)
        if answer.known:
            return answer
        self._evict.warn(f"{answer.unknown}; where that decides, a node that has room for a pod is enough to move it")
        return None
