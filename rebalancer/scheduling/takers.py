"""Which nodes would take a pod for its constraints alone, whatever runs there and however full they are."""

from collections.abc import Iterable

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import PodSpec
from rebalancer.cluster.taints import untolerated

#: Tolerations, required node affinity and node selector of a spec, in a form in which equal ones are equal.
_Constraints = tuple[object, ...]


class Takers:
    """Answers for a fixed set of nodes.

    Equal constraints are looked at once, and nodes that no constraint in question can tell apart only once together,
    so that many specs and many nodes cost little more than both of them added up.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._nodes = tuple(nodes)
        self._of_spec: dict[int, tuple[PodSpec, frozenset[str]]] = {}
        self._of_constraints: dict[_Constraints, frozenset[str]] = {}
        self._alike: dict[frozenset[str] | None, list[list[Node]]] = {}

    def names(self, spec: PodSpec) -> frozenset[str]:
        """Return the nodes whose hard taints are tolerated and which selector and required affinity match."""
        known = self._of_spec.get(id(spec))
        if known is None:
            # Kept with the spec, so that its id cannot come to mean another.
            known = self._of_spec[id(spec)] = (spec, self._by_constraints(spec))
        return known[1]

    def _by_constraints(self, spec: PodSpec) -> frozenset[str]:
        key = (frozenset(spec.tolerations), spec.node_terms, frozenset((spec.node_selector or {}).items()))
        known = self._of_constraints.get(key)
        if known is None:
            known = self._of_constraints[key] = frozenset(
                node.name for alike in self._groups(_keys(spec)) if _takes(alike[0], spec) for node in alike
            )
        return known

    def _groups(self, keys: frozenset[str] | None) -> list[list[Node]]:
        """Return the nodes grouped by taints and the values of these labels; each alone where keys is None."""
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


def _takes(node: Node, spec: PodSpec) -> bool:
    return untolerated(spec.tolerations, node.taints) is None and spec.selects_node(node.labels, node.name)
