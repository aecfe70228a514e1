"""What the pods of each node request, as kube-scheduler counts it, and its scores that are worked out from that.

The sums follow the cluster: pods that go and pods that are expected count at once.
"""

from bisect import insort
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import CPU, MEMORY

_WHOLE = 100
#: What the scheduler takes a pod to need that requests nothing: millicores, and bytes.
_UNSAID = {CPU: 100, MEMORY: 200 << 20}
_DECIMALS = 9  # shares that differ by less are equal, but for the noise of floating point


class PodRequest(NamedTuple):
    """What a pod requests, in millicores and bytes, and what the scheduler assumes of it where it says nothing."""

    cpu: int
    memory: int
    assumed_cpu: int
    assumed_memory: int

    @classmethod
    def of(cls, pod: Pod) -> "PodRequest":
        """Return the request of a pod."""
        cpu, memory = pod.spec.requests.get(CPU, 0), pod.spec.requests.get(MEMORY, 0)
        return cls(cpu, memory, cpu or _UNSAID[CPU], memory or _UNSAID[MEMORY])


class NodeRequests:
    """What the pods of a node request."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._cpu = self._memory = 0
        self._assumed_cpu = self._assumed_memory = 0
        self._all_cpu, self._all_memory = node.allocatable.get(CPU, 0) or 1, node.allocatable.get(MEMORY, 0) or 1

    def count(self, request: PodRequest, sign: int) -> None:
        """Let a pod come (1) or go (-1)."""
        self._cpu += sign * request.cpu
        self._memory += sign * request.memory
        self._assumed_cpu += sign * request.assumed_cpu
        self._assumed_memory += sign * request.assumed_memory

    def share(self) -> float:
        """Return the sum of the shares of cpu and memory that are requested."""
        return self._share(self._assumed_cpu, self._assumed_memory)

    def share_of(self, request: PodRequest) -> float:
        """Return the same of one pod."""
        return self._share(request.assumed_cpu, request.assumed_memory)

    def least_allocated(self, request: PodRequest, times: int) -> int:
        """Return the score of NodeResourcesFit, 0 to 100, with so many more pods of a kind."""
        cpu = _left(self._assumed_cpu + times * request.assumed_cpu, self._all_cpu)
        return (cpu + _left(self._assumed_memory + times * request.assumed_memory, self._all_memory)) // 2

    def balance(self, request: PodRequest, times: int) -> int:
        """Return how even the shares of cpu and memory are with so many more pods of a kind: 50 to 100."""
        cpu = min((self._cpu + times * request.cpu) / self._all_cpu, 1.0)
        memory = min((self._memory + times * request.memory) / self._all_memory, 1.0)
        return int((1 - abs(cpu - memory) / 2) * _WHOLE)

    def _share(self, assumed_cpu: int, assumed_memory: int) -> float:
        return round(assumed_cpu / self._all_cpu + assumed_memory / self._all_memory, _DECIMALS)


def _left(requested: int, offered: int) -> int:
    return max(offered - requested, 0) * _WHOLE // offered


class RequestIndex:
    """The requests of all ready nodes, and where the pods of each owner run.

    Attributes:
        by_share: of the nodes that are not cordoned, the share that is requested and the name; the least first.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._nodes = {node.name: NodeRequests(node) for node in cluster.ready_nodes}
        self._siblings: dict[str, Counter[str]] = {}
        for node in cluster.ready_nodes:
            for pod in cluster.residents(node):
                self._count(pod, node.name, 1)
        open_nodes = (node for node in cluster.ready_nodes if not node.unschedulable)
        self.by_share = sorted((self._nodes[node.name].share(), node.name) for node in open_nodes)

    def on(self, name: str) -> NodeRequests:
        """Return the requests of a ready node."""
        return self._nodes[name]

    def siblings(self, owner_uid: str) -> Mapping[str, int]:
        """Return how many pods of an owner run or are expected on each node, by its name; 0 for any other."""
        return self._siblings.get(owner_uid, Counter())

    def left(self, pod: Pod, sign: int) -> None:
        """Count a pod that went, or is back."""
        if pod.active:
            self._recount(pod, pod.node, -sign)

    def came(self, pod: Pod, node: Node, sign: int) -> None:
        """Count a pod that is expected, or is not any more."""
        self._recount(pod, node.name, sign)

    def _recount(self, pod: Pod, name: str, sign: int) -> None:
        requests = self._nodes.get(name)
        if requests is None:
            return
        before = (requests.share(), name)
        self._count(pod, name, sign)
        if not requests.node.unschedulable:
            self.by_share.remove(before)
            insort(self.by_share, (requests.share(), name))

    def _count(self, pod: Pod, name: str, sign: int) -> None:
        self._nodes[name].count(PodRequest.of(pod), sign)
        if owner := pod.controller:
            self._siblings.setdefault(owner.uid, Counter())[name] += sign
