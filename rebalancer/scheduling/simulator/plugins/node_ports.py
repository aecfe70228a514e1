"""NodePorts: only one pod can use a port of a node.

Source: the Kubernetes documentation, `hostPort` of a container.  The address 0.0.0.0 stands for every address of the
node.  Ports of restartable init containers count since 1.34
(kubernetes/kubernetes#132040).
"""

from collections.abc import Sequence

from rebalancer.cluster.pod import HostPort, Pod
from rebalancer.scheduling.simulator.nodes import Nodes
from rebalancer.scheduling.simulator.plugin import Refusals
from rebalancer.scheduling.simulator.state import State

_SIDECARS_COUNT = 34
_ANY = "0.0.0.0"  # noqa: S104  compared, not listened on
REASON = ("node(s) didn't have free ports for the requested pod ports",)


class NodePorts:
    """Refuses nodes on which a port is taken."""

    name = "NodePorts"

    def __init__(self, state: State) -> None:
        self._state = state
        self._counts_sidecars = state.minor >= _SIDECARS_COUNT

    def refusals(self, pod: Pod, nodes: Nodes) -> Refusals | None:
        """Return the nodes where a port that the pod wants is taken."""
        wanted = self._ports(pod)
        if not wanted:
            return None
        return Refusals.of({index: REASON for index in nodes if self._taken(wanted, index)}, len(self._state.nodes))

    def _taken(self, wanted: Sequence[HostPort], index: int) -> bool:
        taken = [port for pod in self._state.residents[index] for port in self._ports(pod)]
        return any(conflict(one, other) for one in wanted for other in taken)

    def _ports(self, pod: Pod) -> Sequence[HostPort]:
        placement = pod.spec.placement
        return (*placement.host_ports, *placement.sidecar_ports) if self._counts_sidecars else placement.host_ports


def conflict(one: HostPort, other: HostPort) -> bool:
    """Return whether two ports are the same on some address."""
    same = (one.port, one.protocol) == (other.port, other.protocol)
    return same and (one.address == other.address or _ANY in (one.address, other.address))
