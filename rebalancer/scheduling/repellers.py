"""Which pods on a node keep a pod away by its own required anti-affinity, without a look at the others there.

As in the descheduler (see `rebalancer.scheduling.fit.why_repelled`): the pods of one node count, whatever the topology
key, if the node has that label; pods with the same name never count.

Example: 5,000 nodes have 30 pods each, and a pod wants to be apart from the 50 replicas of its owner.  These are found
once, by their labels.  From then on each node costs a look into a table, and not one at 30 pods.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.label_index import LabelIndex
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodAffinityTerm, PodSpec

_NOBODY: dict[Pod, None] = {}


class _Selected:
    """The pods that one term of a pod in some namespace selects.

    Attributes:
        topology_key: of the term.
        by_node: the pods by name of the node.
        names: how many pods have each name.
        seen: how many changes of the cluster it has taken into account.
    """

    __slots__ = ("by_node", "names", "namespaces", "seen", "selector", "topology_key")

    def __init__(self, term: PodAffinityTerm, namespace: str) -> None:
        self.topology_key = term.topology_key
        self.selector = term.selector
        self.namespaces = term.namespaces or (namespace,)
        self.by_node: defaultdict[str, dict[Pod, None]] = defaultdict(dict)
        self.names: Counter[str] = Counter()
        self.seen = 0

    def takes(self, pod: Pod) -> bool:
        """Return whether the term selects a pod."""
        return pod.namespace in self.namespaces and self.selector is not None and self.selector.matches(pod.labels)

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
        by_namespace: defaultdict[str, list[Pod]] = defaultdict(list)
        self._changes: list[tuple[Pod, str, int]] = []
        for pod in cluster.snapshot.pods:
            if pod.active and cluster.contains(pod):
                by_namespace[pod.namespace].append(pod)
        for node in cluster.snapshot.nodes:
            self._changes += [(pod, node.name, 1) for pod in cluster.expected_on(node)]
        self._at_first = {namespace: LabelIndex(pods) for namespace, pods in by_namespace.items()}
        self._known: dict[tuple[int, str], tuple[PodSpec, list[_Selected]]] = {}

    def on(self, pod: Pod, node: Node) -> Collection[Pod]:
        """Return the pods on a node that the pod's own required anti-affinity excludes."""
        there = [each.by_node.get(node.name) for each in self._selected(pod) if each.topology_key in node.labels]
        return [other for pods in there if pods for other in pods if other.name != pod.name]

    def namesake(self, pod: Pod) -> bool:
        """Return whether terms of the pod select another pod of its name: it keeps others away, but not this one."""
        return any(each.names[pod.name] > (pod in each.by_node.get(pod.node, _NOBODY)) for each in self._selected(pod))

    def left(self, pod: Pod, sign: int) -> None:
        """Note that a pod is gone (1), or back (-1)."""
        if pod.active:
            self._changes.append((pod, pod.node, -sign))

    def came(self, pod: Pod, node: Node, sign: int) -> None:
        """Note that a pod is expected on a node (1), or no longer is (-1)."""
        self._changes.append((pod, node.name, sign))

    def _selected(self, pod: Pod) -> Sequence[_Selected]:
        """Return the pods that each term of a pod selects, as they are now; replicas share the answer."""
        known = self._known.get((id(pod.spec), pod.namespace))
        if known is None:
            # The entry keeps the spec alive, so that no other object can get its id.
            found = [self._found(term, pod.namespace) for term in pod.spec.anti_affinity]
            known = self._known[id(pod.spec), pod.namespace] = (pod.spec, found)
        for each in known[1]:
            if each.seen < len(self._changes):
                self._catch_up(each)
        return known[1]

    def _found(self, term: PodAffinityTerm, namespace: str) -> _Selected:
        selected = _Selected(term, namespace)
        for pod in self._matching(selected):
            selected.count(pod, pod.node, 1)
        return selected

    def _matching(self, selected: _Selected) -> Iterable[Pod]:
        """Return the pods as they were when the first question was asked."""
        if selected.selector is None:
            return []
        indices = [self._at_first[each] for each in dict.fromkeys(selected.namespaces) if each in self._at_first]
        return [pod for index in indices for pod in index.matching(selected.selector)]

    def _catch_up(self, selected: _Selected) -> None:
        for pod, name, sign in self._changes[selected.seen :]:
            if selected.takes(pod):
                selected.count(pod, name, sign)
        selected.seen = len(self._changes)
