"""PodDisruptionBudgets (PDBs); immutable."""

import msgspec

from rebalancer.cluster.selectors import LabelSelector

#: The namespace of a PDB whose namespace could not be read: it counts for every one.
EVERY_NAMESPACE = ""


class DisruptionBudget(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A PodDisruptionBudget (PDB).

    Attributes:
        selector: None selects nothing, an empty one every pod of the namespace.
        observed: whether the status belongs to the present spec.
        unhealthy_policy: spec.unhealthyPodEvictionPolicy.
        disrupted: names of the pods that the API server has let go and the PDB's controller has not seen go yet.
        problem: why the PDB could not be read; empty if it could.  It allows nothing then, whatever the numbers.
    """

    namespace: str
    name: str
    selector: LabelSelector | None
    disruptions_allowed: int = 0
    observed: bool = True
    current_healthy: int = 0
    desired_healthy: int = 0
    unhealthy_policy: str = "IfHealthyBudget"
    disrupted: frozenset[str] = frozenset()
    problem: str = ""
