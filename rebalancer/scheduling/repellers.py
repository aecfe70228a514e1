"""Which pods on a node keep a pod away by its own required anti-affinity, without a look at the others there.

As in the descheduler (see `rebalancer.scheduling.fit.why_repelled`): the pods of one node count, whatever the topology
key, if the node has that label; pods with the same name never count.

Example: 5,000 nodes have 30 pods each, and a pod wants to be apart from the 50 replicas of its owner.  These are found
once, by their labels.  From then on each node costs a look into a table, and not one at 30 pods; and a pod that goes
changes the tables of those selectors alone that match it.

No table is kept for a selector that matches many pods, if there are many such selectors: each pod may have one of its
own that matches all others.  Then the pods of a node are looked at, and one of the first is a match as a rule.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.label_index import LabelIndex, SelectorIndex
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodSpec
from rebalancer.cluster.selectors import LabelSelector

_NOBODY: dict[Pod, None] = {}
#: So many pods may be in tables for each pod of the cluster, and for each selector.
_KEPT = 16

#: A pod, and the node that it is on or expected on.
_There = tuple[Pod, str]
#: What a term selects: by which selector, in which namespaces.
_Asked = tuple[LabelSelector, tuple[str, ...]]


class _Selected:
    """The pods that terms with one selector and these namespaces select; kept up to date."""

    __slots__ = ("by_node", "names")

    def __init__(self) -> None:
        self.by_node: defaultdict[str, dict[Pod, None]] = defaultdict(dict)  # the pods by name of the node
        self.names: Counter[str] = Counter()  # how many pods have each name

    def on(self, node: Node) -> Iterable[Pod]:
        """Return the pods on a node."""
        return self.by_node.get(node.name, _NOBODY)

    def is_on(self, node: Node) -> bool:
        """Return whether there are any."""
        return bool(self.by_node.get(node.name))

    def has_namesake(self, pod: Pod) -> bool:
        """Return whether another pod of this name is selected."""
        return self.names[pod.name] > (pod in self.by_node.get(pod.node, _NOBODY))

    def nodes(self, nodes: Mapping[str, Node]) -> Iterator[Node]:
        """Yield those of some nodes that have such pods."""
        return (nodes[name] for name, there in self.by_node.items() if there and name in nodes)

    def count(self, pod: Pod, name: str, sign: int) -> None:
        """Note that a pod came to a node (1), or left it (-1)."""
        self.names[pod.name] += sign
        if sign > 0:
            self.by_node[name][pod] = None
        else:
            del self.by_node[name][pod]


class _Many:
    """The same without tables: whoever asks looks at pods."""

    __slots__ = ("_cluster", "_named", "_namespaces", "_selector")

    def __init__(self, cluster: Cluster, named: Mapping[str, Sequence[Pod]], asked: _Asked) -> None:
        self._cluster = cluster
        self._named = named
        self._selector, self._namespaces = asked[0], frozenset(asked[1])

    def _selects(self, pod: Pod) -> bool:
        return pod.namespace in self._namespaces and self._selector.matches(pod.labels)

    def on(self, node: Node) -> Iterable[Pod]:
        return filter(self._selects, self._cluster.residents(node))

    def is_on(self, node: Node) -> bool:
        return any(map(self._selects, self._cluster.residents(node)))

    def has_namesake(self, pod: Pod) -> bool:
        """Return whether another pod of this name is or was selected: then each node is asked about this pod itself."""
        return any(each is not pod and self._selects(each) for each in self._named[pod.name])

    def nodes(self, nodes: Mapping[str, Node]) -> Iterator[Node]:
        return filter(self.is_on, nodes.values())


class Repellers:
    """Answers for one cluster, which it follows: get it with `cluster.index(Repellers)`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._may_keep = _KEPT * len(cluster.snapshot.pods)
        self._there: defaultdict[str, LabelIndex[_There]] = defaultdict(LabelIndex)
        self._selected: dict[_Asked, _Selected | _Many] = {}
        self._selectors: defaultdict[str, SelectorIndex[_Selected]] = defaultdict(SelectorIndex)
        self._steps = 0
        self._nodes: dict[tuple[tuple[str, int], ...], tuple[int, set[str]]] = {}
        self._known: dict[tuple[int, str], tuple[PodSpec, list[tuple[str, _Selected | _Many]]]] = {}
        for pod in cluster.snapshot.pods:
            if pod.active and cluster.contains(pod):
                self._count(pod, pod.node, 1)
        for node in cluster.snapshot.nodes:
            for pod in cluster.expected_on(node):
                self._count(pod, node.name, 1)

    def on(self, pod: Pod, node: Node) -> Iterator[Pod]:
        """Yield the pods on a node that the pod's own required anti-affinity excludes."""
        there = (each.on(node) for key, each in self._of(pod) if key in node.labels)
        return (other for pods in there for other in pods if other.name != pod.name)

    def on_for_others(self, pod: Pod, node: Node) -> bool:
        """Return whether a pod on a node keeps others of this pod's template away; this pod itself may be the one."""
        return any(each.is_on(node) for key, each in self._of(pod) if key in node.labels)

    def key(self, pod: Pod) -> tuple[tuple[str, int], ...]:
        """Return what is the same for pods whose terms select the same pods."""
        return tuple((topology_key, id(each)) for topology_key, each in self._of(pod))

    def nodes(self, pod: Pod, nodes: Mapping[str, Node]) -> set[str]:
        """Return the names of those of some nodes where `on` finds pods, the pod's own node perhaps among them.

        It is kept for pods of the same terms until one comes or goes.
        """
        terms, asked = self._of(pod), self.key(pod)
        step, found = self._nodes.get(asked, (-1, set()))
        if step != self._steps:
            found = {node.name for key, each in terms for node in each.nodes(nodes) if key in node.labels}
            self._nodes = {asked: (self._steps, found)}
        return found

    def namesake(self, pod: Pod) -> bool:
        """Return whether terms of the pod select another pod of its name: it keeps others away, but not this one."""
        return any(each.has_namesake(pod) for _, each in self._of(pod))

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
        for selected in self._selectors[pod.namespace].matching(pod.labels):
            selected.count(pod, name, sign)

    def _of(self, pod: Pod) -> Sequence[tuple[str, _Selected | _Many]]:
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

    def _found(self, selector: LabelSelector, namespaces: tuple[str, ...]) -> _Selected | _Many:
        asked = (selector, namespaces)
        if asked not in self._selected:
            self._selected[asked] = self._table(*asked) or _Many(self._cluster, self._named, asked)
        return self._selected[asked]

    def _table(self, selector: LabelSelector, namespaces: tuple[str, ...]) -> _Selected | None:
        """Return what a term selects; None if that may be too much to keep."""
        self._may_keep += _KEPT
        indices = [self._there[each] for each in dict.fromkeys(namespaces)]
        number = sum(each.most(selector, self._may_keep) for each in indices)
        if number > self._may_keep:
            return None
        self._may_keep -= number
        selected = _Selected()
        for namespace in dict.fromkeys(namespaces):
            self._selectors[namespace].add(selector, selected)
        for pod, name in chain.from_iterable(each.matching(selector) for each in indices):
            selected.count(pod, name, 1)
        return selected

    @cached_property
    def _named(self) -> Mapping[str, Sequence[Pod]]:
        found: defaultdict[str, list[Pod]] = defaultdict(list)
        for pod in self._cluster.snapshot.pods:
            found[pod.name].append(pod)
        return found
