"""NodePorts: only one pod can use a port of a node.

Source: the Kubernetes documentation, `hostPort` of a container.  The address 0.0.0.0 stands for every address of the
node.  Ports of restartable init containers count.
"""

from collections.abc import Sequence

from rebalancer.cluster.placement import HostPort
from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.simulator.plugin import NO_REFUSALS, Refusals
from rebalancer.scheduling.simulator.state import State

_ANY = "0.0.0.0"  # noqa: S104  compared, not listened on
REASON = ("node(s) didn't have free ports for the requested pod ports",)


class NodePorts:
    """Refuses nodes on which a port is taken."""

    name = "NodePorts"

    def __init__(self, state: State) -> None:
        self._state = state

    def refusals(self, pod: Pod, nodes: Sequence[int]) -> Refusals:
        """Return the nodes where a port that the pod wants is taken."""
        wanted = pod.spec.placement.host_ports
        if not wanted:
            return NO_REFUSALS
        return {index: REASON for index in nodes if self._taken(wanted, index)}

    def _taken(self, wanted: Sequence[HostPort], index: int) -> bool:
        taken = [port for pod in self._state.residents[index] for port in pod.spec.placement.host_ports]
        return any(conflict(one, other) for one in wanted for other in taken)


def conflict(one: HostPort, other: HostPort) -> bool:
    """Return whether two ports are the same on some address."""
    same = (one.port, one.protocol) == (other.port, other.protocol)
    return same and (one.address == other.address or _ANY in (one.address, other.address))
