"""The common part of the filters that look at a pod's claims."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.simulator.claims import Claims, PodClaims, names
from rebalancer.scheduling.simulator.plugin import NO_REFUSALS, Refusals
from rebalancer.scheduling.simulator.state import State


class ByClaims(ABC):
    """Refuses nodes by the claims of a pod; a pod without any passes."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._claims = Claims(state.companions)

    def refusals(self, pod: Pod, nodes: Sequence[int]) -> Refusals:
        """Return the nodes that the claims rule out.

        Raises:
            PodUnschedulableError: a claim is missing, is being deleted, or is unbound although its class binds at once.
            UnknownPlacementError: what the answer depends on was not read.
        """
        return self._refused(self._claims.of(pod), nodes) if names(pod) else NO_REFUSALS

    @abstractmethod
    def _refused(self, claims: PodClaims, nodes: Sequence[int]) -> Refusals: ...
