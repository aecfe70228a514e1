"""The plugins that look at what a node is, whatever runs there: cordoned, tainted, labelled, with images.

Source of TaintToleration and NodeUnschedulable: the Kubernetes documentation, Taints and Tolerations; Manual Node
administration; scheduling profiles (weight 3).  Soft taints are those with PreferNoSchedule; scores are reversed: 100
where none is untolerated, 0 on the node with the most.

Source of NodeAffinity: the Kubernetes documentation, Assigning Pods to Nodes (`nodeSelector`, node affinity, affinity
per profile).  The scores are the sums of the weights of the terms that match; the highest becomes 100.

Source of ImageLocality: the Kubernetes documentation, scheduling plugins; the figures (23 MB, 1000 MB a container) were
checked against the scheduler of 1.36.  An image counts with its size times the share of nodes that have it, so that one
node with a new image does not draw every pod.  Images of init containers count since 1.30
(kubernetes/kubernetes#123366); those of image volumes since 1.36 (#130231), but the most that a pod can have is still
1000 MB for each container and init container.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodSpec, PreferredTerm
from rebalancer.cluster.selectors import NodeSelectorTerm, any_term_matches
from rebalancer.cluster.taints import NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint, Toleration, hard, untolerated
from rebalancer.scheduling.equivalence import asked_labels
from rebalancer.scheduling.simulator.plugin import WHOLE, ByNode, Nodes, Reasons, Refusals, scaled
from rebalancer.scheduling.simulator.state import State, counted

_CORDONED = Taint("node.kubernetes.io/unschedulable", "", NO_SCHEDULE)


class NodeUnschedulable:
    """Refuses cordoned nodes."""

    name = "NodeUnschedulable"

    def __init__(self, state: State) -> None:
        cordoned = (index for index, node in enumerate(state.nodes) if node.unschedulable)
        self._cordoned = Refusals.of(dict.fromkeys(cordoned, ("node(s) were unschedulable",)), len(state.nodes))

    def refusals(self, pod: Pod, _nodes: Nodes) -> Refusals | None:
        """Return the cordoned nodes, unless the pod tolerates that."""
        return None if any(each.tolerates(_CORDONED) for each in pod.spec.tolerations) else self._cordoned


class TaintToleration:
    """Refuses nodes with hard taints, and scores by soft ones."""

    name = "TaintToleration"

    def __init__(self, state: State) -> None:
        self._state = state
        self._hard = [index for index, node in enumerate(state.nodes) if any(map(hard, node.taints))]
        self._counts: dict[tuple[Toleration, ...], tuple[Mapping[int, Sequence[Taint]], ByNode]] = {}
        self._groups = state.alike.groups(frozenset())  # by taints alone there are few kinds of nodes

    def refusals(self, pod: Pod, _nodes: Nodes) -> Refusals | None:
        """Return the nodes with a hard taint that the pod does not tolerate."""
        nodes = self._state.nodes
        refused = [index for index in self._hard if untolerated(pod.spec.tolerations, nodes[index].taints)]
        return Refusals.of(dict.fromkeys(refused, ("node(s) had untolerated taint(s)",)), len(nodes))

    def scores(self, pod: Pod, nodes: Nodes) -> ByNode:
        """Return 100 for nodes without untolerated soft taints, less for others."""
        more = self._state.soft_taints
        known = self._counts.get(pod.spec.tolerations)
        if known is None or known[0] is not more:
            known = self._counts[pod.spec.tolerations] = (more, self._count(pod.spec))
        return scaled(nodes.of(known[1]), reverse=True)

    def _count(self, spec: PodSpec) -> ByNode:
        counts = np.zeros(len(self._state.nodes), dtype=np.int64)
        for group in self._groups:
            counts[group] = _soft_taints(spec, self._state.nodes[group[0]].taints)
        found: dict[int, int] = {}  # many nodes share the very same taints
        for index, taints in self._state.soft_taints.items():
            if id(taints) not in found:
                found[id(taints)] = _soft_taints(spec, taints)
            counts[index] += found[id(taints)]
        return counts


def _soft_taints(spec: PodSpec, taints: Iterable[Taint]) -> int:
    """Return how many soft taints are not tolerated; only tolerations of that effect, or of any, count."""
    counting = [each for each in spec.tolerations if each.effect in ("", PREFER_NO_SCHEDULE)]
    soft = (taint for taint in taints if taint.effect == PREFER_NO_SCHEDULE)
    return sum(not any(each.tolerates(taint) for each in counting) for taint in soft)


class _NodeTerms(msgspec.Struct, rename="camel", frozen=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class _AddedAffinity(msgspec.Struct, frozen=True):
    required: _NodeTerms | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class NodeAffinityArgs(msgspec.Struct, rename="camel", frozen=True):
    """Terms that the profile adds."""

    added_affinity: _AddedAffinity = _AddedAffinity()


class NodeAffinity:
    """Refuses nodes that a pod does not select, and scores by what it prefers."""

    name = "NodeAffinity"
    Args = NodeAffinityArgs

    def __init__(self, state: State, args: NodeAffinityArgs) -> None:
        self._state = state
        added = args.added_affinity
        self._required = None if added.required is None else added.required.node_selector_terms
        self._preferred = added.preferred
        self._weights: dict[tuple[PreferredTerm, ...], ByNode] = {}

    def refusals(self, pod: Pod, nodes: Nodes) -> Refusals | None:
        """Return the nodes that the profile or the pod does not select."""
        spec = pod.spec
        if self._required is None and spec.node_terms is None and not spec.node_selector:
            return None
        found: dict[int, Reasons] = {}
        asked = asked_labels(spec.node_selector, (*(self._required or ()), *(spec.node_terms or ())))
        for group in self._state.alike.groups(asked) if asked is not None else ([index] for index in nodes):
            if reason := self._reason(spec, self._state.nodes[group[0]]):
                found.update(dict.fromkeys(group, reason))
        return Refusals.of(found, len(self._state.nodes))

    def _reason(self, spec: PodSpec, node: Node) -> Reasons:
        if self._required is not None and not any_term_matches(self._required, node.labels, node.name):
            return ("node(s) didn't match scheduler-enforced node affinity",)
        selected = spec.selects_node(node.labels, node.name)
        return () if selected else ("node(s) didn't match Pod's node affinity/selector",)

    def scores(self, pod: Pod, nodes: Nodes) -> ByNode | None:
        """Return the sums of the weights that match, scaled so that the highest is 100."""
        terms = tuple(each for each in (*self._preferred, *pod.spec.preferred) if each.weight)
        if not terms:
            return None
        known = self._weights.get(terms)
        if known is None:
            known = self._weights[terms] = self._sums(terms)
        return scaled(nodes.of(known))

    def _sums(self, terms: Sequence[PreferredTerm]) -> ByNode:
        sums = np.zeros(len(self._state.nodes), dtype=np.int64)
        for group in self._state.alike.groups(asked_labels(None, (each.term for each in terms))):
            node = self._state.nodes[group[0]]
            sums[group] = sum(each.weight for each in terms if each.term.matches(node.labels, node.name))
        return sums


def named_nodes(spec: PodSpec) -> frozenset[str] | None:
    """Return the nodes that the required affinity names, None where it does not name them all.

    Each alternative must ask for `metadata.name`; the scheduler then looks at these nodes only.
    """
    if not spec.node_terms:
        return None
    found: set[str] = set()
    for term in spec.node_terms:
        fields = [set(each.values) for each in term.fields if each.key == "metadata.name" and each.operator == "In"]
        if not fields:
            return None
        found |= set.intersection(*fields)
    return frozenset(found)


_INIT_IMAGES = 30
_VOLUME_IMAGES = 36
_LEAST = 23 << 20
_MOST = 1000 << 20


class ImageLocality:
    """Scores nodes by the images they have."""

    name = "ImageLocality"

    def __init__(self, state: State) -> None:
        self._state = state
        self._images = state.of_nodes(_images)

    def scores(self, pod: Pod, nodes: Nodes) -> ByNode:
        """Return 0 where the pod's images are small, rare or absent, 100 where they are large and common."""
        placement, minor = pod.spec.placement, self._state.minor
        containers = (*placement.images, *(placement.init_images if minor >= _INIT_IMAGES else ()))
        volumes = placement.volume_images if minor >= _VOLUME_IMAGES else ()
        count = len(self._state.nodes)
        sizes = np.zeros(count, dtype=np.int64)
        for image in (*containers, *volumes):
            if image in self._images:
                size, there = self._images[image]
                sizes[there.indexes] += int(float(size) * (len(there) / count))
        most = _MOST * max(len(containers), 1)
        return WHOLE * (np.maximum(np.minimum(nodes.of(sizes), most), _LEAST) - _LEAST) // (most - _LEAST)


def _images(nodes: Sequence[Node]) -> Mapping[str, tuple[int, Nodes]]:
    """Return the size of each image, as the first node reports it, and the nodes that have it."""
    found: dict[str, tuple[int, dict[int, None]]] = {}
    for index, node in enumerate(nodes):
        for image in node.images:
            for name in image.names:
                found.setdefault(name, (image.size, {}))[1][index] = None
    return {name: (counted(size), Nodes(list(there))) for name, (size, there) in found.items()}
