"""Why a node is not emptied."""

from dataclasses import dataclass

from rebalancer.cluster.pod import Pod
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
