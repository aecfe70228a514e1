"""Why a node is not emptied."""

from dataclasses import dataclass

from rebalancer.cluster.pod import Pod
from rebalancer.eviction.causes import Code
from rebalancer.eviction.verdict import Refused


@dataclass(frozen=True, slots=True)
class Kept:
    """One pod that has to stay on its node, and so keeps all others there.

    Attributes:
        pod: the pod.
        refusal: why it stays.
    """

    pod: Pod
    refusal: Refused

    @property
    def is_for_want_of_a_place(self) -> bool:
        """Whether it only stays as it has nowhere to go."""
        return self.refusal.cause.code is Code.NO_DESTINATION
