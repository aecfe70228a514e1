"""Which pods on a node keep a pod away by its own required anti-affinity, without a look at the others there.

As in the descheduler (see `rebalancer.scheduling.fit.why_repelled`): the pods of one node count, whatever the topology
key, if the node has that label; pods with the same name never count.

Example: 5,000 nodes have 30 pods each, and a pod wants to be apart from the 50 replicas of its owner.  These are found
once, by their labels.  From then on each node costs a look into a table, and not one at 30 pods; and a pod that goes
changes the tables of those selectors alone that match it.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.label_index import LabelIndex, SelectorIndex
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodSpec
from rebalancer.cluster.selectors import LabelSelector

_NOBODY: dict[Pod, None] = {}

#: A pod, and the node that it is on or expected on.
_There = tuple[Pod, str]
#: What a term selects: by which selector, in which namespaces.
_Asked = tuple[LabelSelector, tuple[str, ...]]


class _Selected:
    """The pods that terms with one selector and these namespaces select; kept up to date.

    Attributes:
        by_node: the pods by name of the node.
        names: how many pods have each name.
    """

    __slots__ = ("by_node", "names", "namespaces")

    def __init__(self, namespaces: tuple[str, ...]) -> None:
        self.namespaces = frozenset(namespaces)
        self.by_node: defaultdict[str, dict[Pod, None]] = defaultdict(dict)
        self.names: Counter[str] = Counter()

    def count(self, pod: Pod, name: str, sign: int) -> None:
        """Note that a pod came to a node (1), or left it (-1)."""
        self.names[pod.name] += sign
        if sign > 0:
            self.by_node[name][pod] = None
        else:
            del self.by_node[name][pod]


class Repellers:
    """Answers for one cluster, which it follows: get it with `cluster.index(Repellers)`."""

    def __init__(self, cluster: Cluster) -> None:
        self._there: defaultdict[str, LabelIndex[_There]] = defaultdict(LabelIndex)
        self._selected: dict[_Asked, _Selected] = {}
        self._selectors: SelectorIndex[_Selected] = SelectorIndex()
        self._steps = 0
        self._nodes: dict[tuple[tuple[str, int], ...], tuple[int, set[str]]] = {}
        self._known: dict[tuple[int, str], tuple[PodSpec, list[tuple[str, _Selected]]]] = {}
        for pod in cluster.snapshot.pods:
            if pod.active and cluster.contains(pod):
                self._count(pod, pod.node, 1)
        for node in cluster.snapshot.nodes:
            for pod in cluster.expected_on(node):
                self._count(pod, node.name, 1)

    def on(self, pod: Pod, node: Node) -> Collection[Pod]:
        """Return the pods on a node that the pod's own required anti-affinity excludes."""
        there = [each.by_node.get(node.name) for key, each in self._of(pod) if key in node.labels]
        return [other for pods in there if pods for other in pods if other.name != pod.name]

    def on_for_others(self, pod: Pod, node: Node) -> bool:
        """Return whether a pod on a node keeps others of this pod's template away; this pod itself may be the one."""
        return any(each.by_node.get(node.name) for key, each in self._of(pod) if key in node.labels)

    def key(self, pod: Pod) -> tuple[tuple[str, int], ...]:
        """Return what is the same for pods whose terms select the same pods."""
        return tuple((topology_key, id(each)) for topology_key, each in self._of(pod))

    def nodes(self, pod: Pod, nodes: Mapping[str, Node]) -> set[str]:
        """Return the names of those of some nodes where `on` finds pods, the pod's own node perhaps among them.

        It is kept for pods of the same terms until one comes or goes.
        """
        terms, key = self._of(pod), self.key(pod)
        step, found = self._nodes.get(key, (-1, set()))
        if step != self._steps:
            found = {
                name
                for topology_key, each in terms
                for name, there in each.by_node.items()
                if there and name in nodes and topology_key in nodes[name].labels
            }
            self._nodes = {key: (self._steps, found)}
        return found

    def namesake(self, pod: Pod) -> bool:
        """Return whether terms of the pod select another pod of its name: it keeps others away, but not this one."""
        return any(each.names[pod.name] > (pod in each.by_node.get(pod.node, _NOBODY)) for _, each in self._of(pod))

    def left(self, pod: Pod, sign: int) -> None:
        """Note that a pod is gone (1), or back (-1)."""
        if pod.active:
            self._count(pod, pod.node, -sign)

    def came(self, pod: Pod, node: Node, sign: int) -> None:
        """Note that a pod is expected on a node (1), or no longer is (-1)."""
        self._count(pod, node.name, sign)

    def _count(self, pod: Pod, name: str, sign: int) -> None:
        self._steps += 1
        index = self._there[pod.namespace]
        (index.add if sign > 0 else index.remove)(pod.labels, (pod, name))
        for selected in self._selectors.matching(pod.labels):
            if pod.namespace in selected.namespaces:
                selected.count(pod, name, sign)

    def _of(self, pod: Pod) -> Sequence[tuple[str, _Selected]]:
        """Return the topology key of each term of a pod, with the pods that it selects; replicas share the answer."""
        known = self._known.get((id(pod.spec), pod.namespace))
        if known is None:
            # The entry keeps the spec alive, so that no other object can get its id.
            found = [
                (term.topology_key, self._found(term.selector, term.namespaces or (pod.namespace,)))
                for term in pod.spec.anti_affinity
                if term.selector is not None
            ]
            known = self._known[id(pod.spec), pod.namespace] = (pod.spec, found)
        return known[1]

    def _found(self, selector: LabelSelector, namespaces: tuple[str, ...]) -> _Selected:
        asked = (selector, namespaces)
        selected = self._selected.get(asked)
        if selected is None:
            selected = self._selected[asked] = _Selected(namespaces)
            self._selectors.add(selector, selected)
            for namespace in selected.namespaces:
                for pod, name in self._there[namespace].matching(selector):
                    selected.count(pod, name, 1)
        return selected
