"""PodDisruptionBudgets (PDBs); immutable."""

import msgspec

from rebalancer.cluster.selectors import LabelSelector


class DisruptionBudget(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A PodDisruptionBudget (PDB).

    Attributes:
        selector: None selects nothing, an empty one every pod of the namespace.
        observed: whether the status belongs to the present spec.
        unhealthy_policy: spec.unhealthyPodEvictionPolicy.
    """

    namespace: str
    name: str
    selector: LabelSelector | None
    disruptions_allowed: int = 0
    observed: bool = True
    current_healthy: int = 0
    desired_healthy: int = 0
    unhealthy_policy: str = "IfHealthyBudget"
