"""Where the scheduler would put a pod: kube-scheduler's default scores, worked out from requests.

A pod that is evicted comes back where the scheduler wants it, not where there is room by usage.  The scores are those
of NodeResourcesFit (LeastAllocated), NodeResourcesBalancedAllocation and, for pods with an owner, PodTopologySpread
with its default constraint over hosts, each with its default weight, as the version of Kubernetes has them that the
newest kubelet tells (kubelets may lag behind the scheduler, but are never ahead of the API server).  Zones,
preferences, images and scheduler configurations of one's own are not looked at.  A pod's own node is scored as if the
pod had left it: what ends at once may come straight back.

In a cluster of more than a hundred nodes the scheduler scores only some of them, others each time; there any of the
nodes with the least requests is likely, and not the best one.
"""

import re
from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice
from math import log
from typing import NamedTuple

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import CPU, MEMORY

_WHOLE = 100
_HALF = 50
_PERCENT = 50  # what a sum of two shares is multiplied with to be their mean in percent
_SPREAD_WEIGHT = 2
_ALLOWANCE = 2  # the default constraint's maxSkew of 3, less one
#: What the scheduler takes a pod to need that requests nothing: millicores, and bytes.
_UNSAID = {CPU: 100, MEMORY: 200 << 20}
#: So many nodes are looked at: those with the fewest siblings, which count most, and of these those with the least
#: requests; the best is among them.  Where the scheduler scores a part it is any of those with the least requests.
_LOOKED_AT = 32
_ALL_SCORED = 100  # nodes, by default; of larger clusters a part
_DECIMALS = 9  # shares that differ by less are equal, but for the noise of floating point
#: BalancedAllocation passes over pods that request nothing since Kubernetes 1.33 (kubernetes/kubernetes#130260), and
#: scores by how much a pod changes the balance since 1.36 (#135573).
_NOTHING_IS_NOT_BALANCED = 33
_BALANCED_BY_CHANGE = 36
_KUBERNETES = re.compile(r"v?1\.(\d+)\b")


class _Request(NamedTuple):
    """What a pod requests, in millicores and bytes, and what the scheduler assumes of it where it says nothing."""

    cpu: int
    memory: int
    assumed_cpu: int
    assumed_memory: int

    @classmethod
    def of(cls, pod: Pod) -> "_Request":
        cpu, memory = pod.spec.requests.get(CPU, 0), pod.spec.requests.get(MEMORY, 0)
        return cls(cpu, memory, cpu or _UNSAID[CPU], memory or _UNSAID[MEMORY])


class _Requests:
    """What the pods of a node request."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._cpu = self._memory = 0
        self._assumed_cpu = self._assumed_memory = 0
        self._all_cpu, self._all_memory = node.allocatable.get(CPU, 0) or 1, node.allocatable.get(MEMORY, 0) or 1

    def count(self, request: _Request, sign: int) -> None:
        """Let a pod come (1) or go (-1)."""
        self._cpu += sign * request.cpu
        self._memory += sign * request.memory
        self._assumed_cpu += sign * request.assumed_cpu
        self._assumed_memory += sign * request.assumed_memory

    def share(self) -> float:
        """Return the sum of the shares of cpu and memory that are requested."""
        return self._share(self._assumed_cpu, self._assumed_memory)

    def share_of(self, request: _Request) -> float:
        """Return the same of one pod."""
        return self._share(request.assumed_cpu, request.assumed_memory)

    def least_allocated(self, request: _Request, times: int) -> int:
        """Return the score of NodeResourcesFit, 0 to 100, with so many more pods of a kind."""
        cpu = _left(self._assumed_cpu + times * request.assumed_cpu, self._all_cpu)
        return (cpu + _left(self._assumed_memory + times * request.assumed_memory, self._all_memory)) // 2

    def balance(self, request: _Request, times: int) -> int:
        """Return how even the shares of cpu and memory are with so many more pods of a kind: 50 to 100."""
        cpu = min((self._cpu + times * request.cpu) / self._all_cpu, 1.0)
        memory = min((self._memory + times * request.memory) / self._all_memory, 1.0)
        return int((1 - abs(cpu - memory) / 2) * _WHOLE)

    def _share(self, assumed_cpu: int, assumed_memory: int) -> float:
        return round(assumed_cpu / self._all_cpu + assumed_memory / self._all_memory, _DECIMALS)


def _left(requested: int, offered: int) -> int:
    return max(offered - requested, 0) * _WHOLE // offered


class Forecast:
    """Tells where pods of one cluster would go, one after the other."""

    def __init__(self, cluster: Cluster) -> None:
        self._requests = {node.name: _Requests(node) for node in cluster.ready_nodes}
        self._siblings: dict[str, Counter[str]] = {}
        for node in cluster.ready_nodes:
            for pod in cluster.active_pods_on(node):
                self._count(pod, node.name, 1)
        self._minor = _newest_minor(cluster.ready_nodes)
        open_nodes = (node for node in cluster.ready_nodes if not node.unschedulable)
        self._order = sorted((self._requests[node.name].share(), node.name) for node in open_nodes)

    @property
    def exact(self) -> bool:
        """Whether the scheduler scores all nodes; otherwise nobody knows which of the best it takes."""
        return len(self._order) <= _ALL_SCORED

    def likely(self, pod: Pod, fits: Callable[[Pod, Node], bool]) -> list[Node]:
        """Return the nodes that the scheduler would likely choose, by chance one or another.

        Args:
            pod: the pod that would go.
            fits: tells whether it could run on a node.

        Returns:
            The nodes of the best score, by name; in a large cluster those with the least requests, the best first.
        """
        nodes = self._candidates(pod, fits)
        spread = self._spread_scores(pod, nodes)
        ranked = sorted((-self._score(pod, node) - spread[node.name], node.name, node) for node in nodes)
        return [node for score, _, node in ranked if score == ranked[0][0] or not self.exact]

    def requested(self) -> dict[str, float]:
        """Return what is requested of the nodes that take pods, by name: the mean of cpu and memory, in percent."""
        return {name: share * _PERCENT for share, name in self._order}

    def points(self, pod: Pod, node: Node) -> float:
        """Return how much of a node a pod requests; as above."""
        return self._requests[node.name].share_of(_Request.of(pod)) * _PERCENT

    def move(self, pod: Pod, home: str, place: str) -> None:
        """Count a pod on one node no more, and on another."""
        for name, sign in ((home, -1), (place, 1)):
            if name in self._requests:
                self._reorder(pod, name, sign)

    def _reorder(self, pod: Pod, name: str, sign: int) -> None:
        before = (self._requests[name].share(), name)
        self._count(pod, name, sign)
        if before in self._order:
            self._order.remove(before)
            insort(self._order, (self._requests[name].share(), name))

    def _count(self, pod: Pod, name: str, sign: int) -> None:
        self._requests[name].count(_Request.of(pod), sign)
        if owner := pod.controller:
            self._siblings.setdefault(owner.uid, Counter())[name] += sign

    def _candidates(self, pod: Pod, fits: Callable[[Pod, Node], bool]) -> list[Node]:
        names = [name for _, name in self._order]
        if self.exact:
            names.sort(key=self._count_siblings(pod))
        nodes = (self._requests[name].node for name in names)
        return list(islice((node for node in nodes if fits(pod, node)), _LOOKED_AT))

    def _score(self, pod: Pod, node: Node) -> int:
        """Return LeastAllocated and BalancedAllocation together for a pod that comes, or comes back."""
        requests, request = self._requests[node.name], _Request.of(pod)
        before, after = (-1, 0) if node.name == pod.node else (0, 1)
        score = requests.least_allocated(request, after)
        if self._minor >= _NOTHING_IS_NOT_BALANCED and not request.cpu and not request.memory:
            return score
        balance = requests.balance(request, after)
        if self._minor < _BALANCED_BY_CHANGE:
            return score + balance
        return score + _HALF + (_HALF + balance - requests.balance(request, before)) // 2

    def _spread_scores(self, pod: Pod, nodes: list[Node]) -> dict[str, int]:
        """Return the weighted scores by name of the node: the more of its siblings run there, the fewer."""
        siblings, weight = self._count_siblings(pod), log(len(nodes) + 2)
        raw = {node.name: round(siblings(node.name) * weight + _ALLOWANCE) for node in nodes}
        most, least = max(raw.values(), default=0), min(raw.values(), default=0)
        return {name: _SPREAD_WEIGHT * (_WHOLE * (most + least - value) // most) for name, value in raw.items()}

    def _count_siblings(self, pod: Pod) -> Callable[[str], int]:
        """Return what tells how many pods of the same owner a node has, by its name, not counting the pod itself."""
        owner = pod.controller
        siblings = self._siblings.get(owner.uid, Counter()) if owner else Counter[str]()
        return lambda name: max(siblings[name] - (name == pod.node), 0)


def _newest_minor(nodes: Iterable[Node]) -> int:
    """Return the minor version of Kubernetes 1 that the newest kubelet is of; the newest known if none tells."""
    versions = (_KUBERNETES.match(node.kubelet_version) for node in nodes)
    return max((int(version[1]) for version in versions if version), default=_BALANCED_BY_CHANGE)
