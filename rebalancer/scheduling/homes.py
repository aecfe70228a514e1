"""Whether some other node takes a pod, asked of many pods at little cost.

Pods of one template ask the same question, and within a cycle pods only leave: a node that takes a spec goes on taking
it, and one that does not may do so only after a pod has left it.  So for each spec the first two nodes that take it are
remembered (two, since one of them may be the pod's own), and after evictions only the nodes they left are looked at.
"""

from collections.abc import Sequence

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.fit import why_too_full
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod

_ENOUGH = 2


class _Search:
    """What is known of one spec: nodes that take it, and how far it has looked.

    Attributes:
        found: up to two nodes that take it.
        asked: nodes of the list that were asked so far.
        changes: changes of the cluster that were looked at since.
    """

    __slots__ = ("asked", "changes", "found")

    def __init__(self, changes: int) -> None:
        self.found: list[str] = []
        self.asked = 0
        self.changes = changes

    def other_than(self, name: str) -> str:
        """Return the first node found that is not the one of this name, empty if there is none."""
        return next((each for each in self.found if each != name), "")


class Homes:
    """Answers for one cluster and one list of nodes."""

    def __init__(self, cluster: Cluster, nodes: Sequence[Node]) -> None:
        self._cluster = cluster
        self._nodes = nodes
        self._by_name = {node.name: node for node in nodes}
        self._searches: dict[int, _Search] = {}

    def takes(self, pod: Pod) -> bool:
        """Tell whether one of the nodes other than the pod's own takes it: `Cluster.fits_any_other`."""
        return bool(self.home(pod))

    def home(self, pod: Pod) -> str:
        """Return the name of a node other than the pod's own that takes it, empty if none does."""
        if pod.spec.anti_affinity:  # depends on the pod's name and namespace too
            others = (node for node in self._nodes if node.name != pod.node)
            return next((node.name for node in others if self._cluster.fits(pod, node)), "")
        search = self._searches.get(id(pod.spec))
        if search is None:
            search = self._searches[id(pod.spec)] = _Search(len(self._cluster.changes))
        return search.other_than(pod.node) or self._go_on(search, pod)

    def _go_on(self, search: _Search, pod: Pod) -> str:
        changes = self._cluster.changes
        while search.changes < len(changes) and len(search.found) < _ENOUGH:
            self._ask(search, pod, self._by_name.get(changes[search.changes]))
            search.changes += 1
        while search.asked < len(self._nodes) and len(search.found) < _ENOUGH:
            self._ask(search, pod, self._nodes[search.asked])
            search.asked += 1
        return search.other_than(pod.node)

    def _ask(self, search: _Search, pod: Pod, node: Node | None) -> None:
        if node is None or node.name in search.found:
            return
        takes_any = not self._cluster.why_not(pod, node)
        if takes_any and not (node.name == pod.node and why_too_full(pod.spec, self._cluster.free(node))):
            search.found.append(node.name)
