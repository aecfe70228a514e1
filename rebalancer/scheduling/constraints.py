"""What pods demand of a node, no matter what runs there: tolerations, node selector and required node affinity.

Pods with equal constraints form a group, and each question is answered once per group.  Nodes with equal taints and
equal values of the labels in question are checked once together.  So the cost is close to specs plus nodes, not specs
times nodes.
"""

from collections.abc import Iterable

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import PodSpec
from rebalancer.cluster.taints import untolerated
from rebalancer.eviction.causes import Cause
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
        self._of_spec: dict[int, tuple[PodSpec, ConstraintGroup]] = {}
        self._of_constraints: dict[object, ConstraintGroup] = {}
        self._alike: dict[frozenset[str] | None, list[list[Node]]] = {}

    def of(self, spec: PodSpec) -> ConstraintGroup:
        """Return the group of a spec; specs with equal constraints get the same object."""
        known = self._of_spec.get(id(spec))
        if known is None:
            # The entry keeps the spec alive, so that no other object can get its id.
            known = self._of_spec[id(spec)] = (spec, self._by_constraints(spec))
        return known[1]

    def _by_constraints(self, spec: PodSpec) -> ConstraintGroup:
        key = (frozenset(spec.tolerations), spec.node_terms, frozenset((spec.node_selector or {}).items()))
        known = self._of_constraints.get(key)
        if known is None:
            groups = self._alike_for(_keys(spec))
            names = frozenset(node.name for alike in groups if _met(spec, alike[0]) for node in alike)
            known = self._of_constraints[key] = ConstraintGroup(spec, names)
        return known

    def _alike_for(self, keys: frozenset[str] | None) -> list[list[Node]]:
        """Return the nodes grouped by taints and the values of these labels; if keys is None, each on its own."""
        known = self._alike.get(keys)
        if known is None:
            groups: dict[object, list[Node]] = {}
            for node in self._nodes:
                values = node.name if keys is None else tuple(node.labels.get(key) for key in sorted(keys))
                groups.setdefault((node.taints, values), []).append(node)
            known = self._alike[keys] = list(groups.values())
        return known


def _keys(spec: PodSpec) -> frozenset[str] | None:
    """Return the labels that the spec asks about; None if it asks for nodes by name."""
    terms = spec.node_terms or ()
    if any(term.fields for term in terms):
        return None
    asked = (requirement.key for term in terms for requirement in term.expressions)
    return frozenset((*(spec.node_selector or {}), *asked))


def _met(spec: PodSpec, node: Node) -> bool:
    return untolerated(spec.tolerations, node.taints) is None and spec.selects_node(node.labels, node.name)
