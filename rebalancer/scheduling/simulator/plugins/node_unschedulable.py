"""NodeUnschedulable: a cordoned node takes only pods that tolerate its taint.

Source: the Kubernetes documentation, Manual Node administration; Taints and Tolerations (the taint's name).
"""

from collections.abc import Sequence

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.taints import NO_SCHEDULE, Taint
from rebalancer.scheduling.simulator.plugin import NO_REFUSALS, Refusals
from rebalancer.scheduling.simulator.state import State

CORDONED = Taint("node.kubernetes.io/unschedulable", "", NO_SCHEDULE)
REASON = ("node(s) were unschedulable",)


class NodeUnschedulable:
    """Refuses cordoned nodes."""

    name = "NodeUnschedulable"

    def __init__(self, state: State) -> None:
        self._cordoned = dict.fromkeys((index for index, node in enumerate(state.nodes) if node.unschedulable), REASON)

    def refusals(self, pod: Pod, _nodes: Sequence[int]) -> Refusals:
        """Return the cordoned nodes, unless the pod tolerates that."""
        if any(each.tolerates(CORDONED) for each in pod.spec.tolerations):
            return NO_REFUSALS
        return self._cordoned
