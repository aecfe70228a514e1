"""What pods demand of a node, no matter what runs there: tolerations, node selector and required node affinity.

Pods with equal constraints form a group, and each question is answered once per group.  Nodes that look alike are
checked once together.  So the cost is close to specs plus nodes, not specs times nodes.
"""

from collections.abc import Iterable

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import PodSpec
from rebalancer.cluster.taints import untolerated
from rebalancer.eviction.causes import Cause
from rebalancer.scheduling.alike import AlikeNodes, Demands, asked_labels
from rebalancer.scheduling.fit import why_placement_fails


class ConstraintGroup:
    """The pods with the same constraints; `names` are the nodes that meet them, cordoned or not."""

    __slots__ = ("_causes", "_spec", "names")

    def __init__(self, spec: PodSpec, names: frozenset[str]) -> None:
        self.names = names
        self._spec = spec
        self._causes: dict[str, Cause | None] = {}

    def why_not(self, node: Node) -> Cause | None:
        """Return why no pod of the group may be placed on a node, None if each may (see `why_placement_fails`)."""
        if node.name not in self._causes:
            self._causes[node.name] = why_placement_fails(self._spec, node)
        return self._causes[node.name]


class ConstraintGroups:
    """Sorts specs into groups, over a fixed set of nodes."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._nodes = tuple(nodes)
        self._alike = AlikeNodes(self._nodes)
        self._demands = Demands()
        self._groups: dict[int, ConstraintGroup] = {}

    def of(self, spec: PodSpec) -> ConstraintGroup:
        """Return the group of a spec; specs with equal constraints get the same object."""
        number = self._demands.of(spec)
        known = self._groups.get(number)
        if known is None:
            known = self._groups[number] = ConstraintGroup(spec, self._names(spec))
        return known

    def _names(self, spec: PodSpec) -> frozenset[str]:
        groups = self._alike.groups(asked_labels(spec.node_selector, spec.node_terms or ()))
        met = (group for group in groups if _met(spec, self._nodes[group[0]]))
        return frozenset(self._nodes[position].name for group in met for position in group)


def _met(spec: PodSpec, node: Node) -> bool:
    return untolerated(spec.tolerations, node.taints) is None and spec.selects_node(node.labels, node.name)
