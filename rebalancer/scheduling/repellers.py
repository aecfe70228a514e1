"""On which nodes pods are that keep a pod away by its own required anti-affinity.

As in the descheduler (see `rebalancer.scheduling.fit.why_repelled`): the pods of one node count, whatever the topology
key, if the node has that label; pods with the same name never count.
"""

from collections import defaultdict
from collections.abc import Iterator

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.label_index import LabelIndex
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.selectors import LabelSelector

#: A topology key, and what a term selects in which namespaces.
_Term = tuple[str, LabelSelector, tuple[str, ...]]


class Repellers:
    """Answers for one cluster, which it follows: get it with `cluster.index(Repellers)`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._there: defaultdict[tuple[str, str], dict[Pod, None]] = defaultdict(dict)  # by node and namespace
        self._labelled: defaultdict[str, LabelIndex[tuple[Pod, str]]] = defaultdict(LabelIndex)  # by namespace
        self._named: defaultdict[str, dict[str, list[tuple[Pod, str]]]] = defaultdict(dict)  # by namespace and name
        self._steps = 0
        self._last: tuple[object, set[str]] = (None, set())
        for pod in cluster.snapshot.pods:
            self.left(pod, -1)
        cluster.tell(self)

    def are_on(self, node: Node, pod: Pod, name: str) -> bool:
        """Return whether a pod's own required anti-affinity excludes a pod on the node, of any other name than this."""
        return any(self._are_on(node, term, name) for term in self.terms(pod))

    def _are_on(self, node: Node, term: _Term, name: str = "") -> bool:
        key, selector, namespaces = term
        there = (other for each in namespaces for other in self._there.get((node.name, each), ()))
        return key in node.labels and any(other.name != name and selector.matches(other.labels) for other in there)

    def nodes(self, pod: Pod) -> set[str]:
        """Return the names of the nodes with pods that it excludes, the pod's own node perhaps among them.

        Pods of one template ask one after the other, so the last answer is kept until a pod comes or goes.
        """
        terms = self.terms(pod)
        if self._last[0] != (self._steps, terms):
            found = {node.name for term in terms for node in self._with(*term)}
            self._last = ((self._steps, terms), found)
        return self._last[1]

    def _with(self, key: str, selector: LabelSelector, namespaces: tuple[str, ...]) -> Iterator[Node]:
        """Yield the nodes with such pods: those of all such pods, or where these may be many, node by node."""
        nodes = self._cluster.snapshot.nodes
        indices = [self._labelled[each] for each in dict.fromkeys(namespaces)]
        if sum(each.most(selector, len(nodes)) for each in indices) < len(nodes):
            there = (self._cluster.node(name) for each in indices for _, name in each.matching(selector))
            return (node for node in there if node and key in node.labels)
        return (node for node in nodes if self._are_on(node, (key, selector, namespaces)))

    def beside_namesakes(self, pod: Pod) -> set[str]:
        """Return the nodes with pods of its name, itself too, that its terms select: these keep others away, not it."""
        return {
            node
            for _, selector, namespaces in self.terms(pod)
            for each in namespaces
            for other, node in self._named[each].get(pod.name, ())
            if selector.matches(other.labels)
        }

    @staticmethod
    def terms(pod: Pod) -> list[_Term]:
        """Return the terms of a pod's anti-affinity; for equal ones the answers are the same."""
        return [
            (term.topology_key, term.selector, term.namespaces or (pod.namespace,))
            for term in pod.spec.anti_affinity
            if term.selector is not None
        ]

    def left(self, pod: Pod, sign: int) -> None:
        """Note that a pod is gone (1), or back (-1)."""
        node = self._cluster.node(pod.node)
        if pod.active and node:
            self.came(pod, node, -sign)

    def came(self, pod: Pod, node: Node, sign: int) -> None:
        """Note that a pod is expected on a node (1), or no longer is (-1)."""
        self._steps += 1
        place, labelled = (pod, node.name), self._labelled[pod.namespace]
        there, named = self._there[node.name, pod.namespace], self._named[pod.namespace].setdefault(pod.name, [])
        if sign > 0:
            there[pod] = None
            named.append(place)
            labelled.add(pod.labels, place)
        else:
            del there[pod]
            named.remove(place)
            labelled.remove(pod.labels, place)
