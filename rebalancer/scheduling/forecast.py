"""Where the scheduler would put a pod: kube-scheduler's default scores, worked out from requests.

A pod that is evicted comes back where the scheduler wants it, not where there is room by usage.  The scores are those
of NodeResourcesFit (LeastAllocated), NodeResourcesBalancedAllocation and, for pods with an owner, PodTopologySpread
with its default constraint over hosts, each with its default weight, as the version of Kubernetes has them that the
newest kubelet tells (kubelets may lag behind the scheduler, but are never ahead of the API server).  Zones,
preferences, images and scheduler configurations of one's own are not looked at.  A pod's own node is scored as if the
pod had left it: what ends at once may come straight back.

In a cluster of more than a hundred nodes the scheduler scores only some of them, others each time; there any of the
nodes with the least requests is likely, and not the best one.

An example: a pod requests 1 of 10 cores and 10 of 100 GiB.  It runs on n1, where pods request 80 % without it; n2 has
20 % requested and n3 50 %, and neither runs a sibling.  LeastAllocated: n1 10, n2 70, n3 40, since so much is left with
the pod.  Both resources are as full everywhere, so the balance is the same, and so is the spread.  n2 it is.  If n2 ran
three siblings of the pod and the others none, the spread would give n2 56 points and the others 200, and n3 would win.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from math import log

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.eligibility import EligibleNodes
from rebalancer.scheduling.requests import PodRequest, RequestIndex

_WHOLE = 100
_HALF = 50
_PERCENT = 50  # what a sum of two shares is multiplied with to be their mean in percent
_SPREAD_WEIGHT = 2
_ALLOWANCE = 2  # the default constraint's maxSkew of 3, less one
#: So many nodes are looked at: those with the fewest siblings, which count most, and of these those with the least
#: requests; the best is among them.  Where the scheduler scores a part it is any of those with the least requests.
_LOOKED_AT = 32
_ALL_SCORED = 100  # nodes, by default; of larger clusters a part
#: BalancedAllocation passes over pods that request nothing since Kubernetes 1.33 (kubernetes/kubernetes#130260), and
#: scores by how much a pod changes the balance since 1.36 (#135573).
_NOTHING_IS_NOT_BALANCED = 33
_BALANCED_BY_CHANGE = 36
_KUBERNETES = re.compile(r"v?1\.(\d+)\b")


class Forecast:
    """Tells which nodes the scheduler may choose for a pod, in the cluster as it is when it is asked."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._eligible = cluster.index(EligibleNodes)
        self._requests = cluster.index(RequestIndex)
        self._minor = _newest_minor(cluster.ready_nodes)

    @property
    def exact(self) -> bool:
        """Whether the scheduler scores all nodes; otherwise nobody knows which of the best it takes."""
        return len(self._requests.by_share) <= _ALL_SCORED

    def likely(self, pod: Pod) -> list[Node]:
        """Return the nodes that the scheduler would likely choose for a pod, by chance one or another.

        Returns:
            The nodes of the best score, by name; in a large cluster those with the least requests, the best first.
            None where the pod fits no node.
        """
        # First those that could be best, then the score of each; all with the best score are as likely.
        nodes = self._candidates(pod)
        spread = self._spread_scores(pod, nodes)
        ranked = sorted((-self._score(pod, node) - spread[node.name], node.name, node) for node in nodes)
        return [node for score, _, node in ranked if score == ranked[0][0] or not self.exact]

    def requested(self) -> dict[str, float]:
        """Return what is requested of the nodes that take pods, by name: the mean of cpu and memory, in percent."""
        return {name: share * _PERCENT for share, name in self._requests.by_share}

    def points(self, pod: Pod, node: Node) -> float:
        """Return how much of a node a pod requests; as above."""
        return self._requests.on(node.name).share_of(PodRequest.of(pod)) * _PERCENT

    def _candidates(self, pod: Pod) -> list[Node]:
        names = [name for _, name in self._requests.by_share]
        if self.exact:
            names.sort(key=self._count_siblings(pod))
        nodes = (self._requests.on(name).node for name in names)
        return list(islice((node for node in nodes if self._eligible.fits(pod, node)), _LOOKED_AT))

    def _score(self, pod: Pod, node: Node) -> int:
        """Return LeastAllocated and BalancedAllocation together for a pod that comes, or comes back."""
        requests, request = self._requests.on(node.name), PodRequest.of(pod)
        # While the pod is on its own node, that has it counted already; once it left, it would come like anywhere.
        there = node.name == pod.node and self._cluster.contains(pod)
        before, after = (-1, 0) if there else (0, 1)
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
        siblings = self._siblings(pod)
        own = pod.node if self._cluster.contains(pod) else None
        return lambda name: max(siblings.get(name, 0) - (name == own), 0)

    def _siblings(self, pod: Pod) -> Mapping[str, int]:
        return self._requests.siblings(pod.controller.uid) if pod.controller else Counter[str]()


def _newest_minor(nodes: Iterable[Node]) -> int:
    """Return the minor version of Kubernetes 1 that the newest kubelet is of; the newest known if none tells."""
    versions = (_KUBERNETES.match(node.kubelet_version) for node in nodes)
    return max((int(version[1]) for version in versions if version), default=_BALANCED_BY_CHANGE)
