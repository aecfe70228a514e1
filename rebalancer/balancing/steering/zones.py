"""Spreading over zones, which steering must not make worse: taints weigh more than the scheduler's wish to spread."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


class ZoneSpread:
    """How the pods of each owner are spread over the values of topology keys.

    Zones count for all owners.  For pods with spread constraints their topology keys count too, except the hostname.
    It follows the cluster: get it with `cluster.index(ZoneSpread)`.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._values: defaultdict[str, set[str]] = defaultdict(set)
        asked = {ZONE, *(each.topology_key for pod in cluster.snapshot.pods for each in pod.spec.spread)}
        # Pods may name any number of keys that no node has; nothing is counted by these.
        self._keys = asked.intersection(key for node in cluster.snapshot.nodes for key in node.labels)
        keys = sorted(self._keys - {HOST})
        self._places = {node.name: tuple(map(node.labels.get, keys)) for node in cluster.snapshot.nodes}
        for node in cluster.ready_nodes:
            for key in self._keys & node.labels.keys():
                self._values[key].add(node.labels[key])
            for pod in cluster.residents(node):
                self._count(pod, node, 1)
        # Whether there are zones, or other topology domains larger than a node, to spread over.
        self.matter = any(len(values) > 1 for key, values in self._values.items() if key != HOST)

    def by_place(self, names: Iterable[str]) -> dict[object, tuple[str, ...]]:
        """Return the names of nodes by zone, or by each combination of zones and the other domains."""
        found = defaultdict[object, list[str]](list)
        for name in names:
            found[self._places[name]].append(name)
        return {place: tuple(names) for place, names in found.items()}

    def worsened_by(self, pod: Pod, destination: Node) -> bool:
        """Return whether a move would spread the owner's pods less evenly over some topology key."""
        source, owner = self._cluster.node(pod.node), pod.controller
        if source is None or owner is None:
            return False
        keys = {ZONE, *(each.topology_key for each in pod.spec.spread)} - {HOST}
        return any(self._worsens(key, owner.uid, source, destination) for key in keys)

    def _worsens(self, key: str, owner: str, source: Node, destination: Node) -> bool:
        left, joined = source.labels.get(key), destination.labels.get(key)
        if left is None or joined is None or left == joined:
            return False
        before = {value: self._counts[owner, key][value] for value in self._values[key]}
        after = {**before, left: before.get(left, 0) - 1, joined: before.get(joined, 0) + 1}
        skew, then = (max(counts.values()) - min(counts.values()) for counts in (before, after))
        return then > skew

    def left(self, pod: Pod, sign: int) -> None:
        """Count a pod that went, or is back."""
        node = self._cluster.node(pod.node)
        if node is not None and pod.active:
            self._count(pod, node, -sign)

    def came(self, pod: Pod, node: Node, sign: int) -> None:
        """Count a pod that is expected on a node, or is not any more."""
        self._count(pod, node, sign)

    def _count(self, pod: Pod, node: Node, sign: int) -> None:
        owner = pod.controller
        if owner is not None and not pod.terminating:
            for key in self._keys & node.labels.keys():
                self._counts[owner.uid, key][node.labels[key]] += sign
