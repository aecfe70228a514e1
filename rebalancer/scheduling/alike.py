"""Specs that ask the same of nodes, and nodes that such a question cannot tell apart: answered once for all of them.

Example: of 5,000 nodes 40 have a taint, and 300 specs ask for the label `tier`, which is gold or silver, with the same
tolerations.  That is one demand and up to four groups of nodes: selector and tolerations are checked four times, not
1,500,000 times.
"""

from collections.abc import Iterable

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import PodSpec
from rebalancer.cluster.selectors import Labels, NodeSelectorTerm


class Demands:
    """Numbers specs by what they ask of a node's taints and labels: tolerations, node selector, required affinity."""

    def __init__(self) -> None:
        self._of_spec: dict[int, tuple[PodSpec, int]] = {}
        self._numbers: dict[object, int] = {}

    def of(self, spec: PodSpec) -> int:
        """Return the number of what a spec asks for; specs that ask for the same have the same number."""
        known = self._of_spec.get(id(spec))
        if known is None:
            # The entry keeps the spec alive, so that no other object can get its id.
            known = self._of_spec[id(spec)] = (spec, self._number(spec))
        return known[1]

    def _number(self, spec: PodSpec) -> int:
        key = (frozenset(spec.tolerations), spec.node_terms, frozenset((spec.node_selector or {}).items()))
        return self._numbers.setdefault(key, len(self._numbers))


class AlikeNodes:
    """Groups a fixed list of nodes."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._nodes = tuple(nodes)
        self._known: dict[frozenset[str] | None, list[list[int]]] = {}
        self._kinds: dict[frozenset[str], list[int]] = {}

    def groups(self, keys: frozenset[str] | None) -> list[list[int]]:
        """Return the positions of the nodes, grouped by their taints and the values of these labels.

        If keys is None, each node is on its own.
        """
        known = self._known.get(keys)
        if known is None:
            groups: dict[object, list[int]] = {}
            for position, node in enumerate(self._nodes):
                values = position if keys is None else tuple(node.labels.get(key) for key in sorted(keys))
                groups.setdefault((node.taints, values), []).append(position)
            known = self._known[keys] = list(groups.values())
        return known

    def kinds(self, keys: frozenset[str]) -> list[int]:
        """Return, by position of the node, the number of its group."""
        known = self._kinds.get(keys)
        if known is None:
            known = self._kinds[keys] = [0] * len(self._nodes)
            for number, group in enumerate(self.groups(keys)):
                for position in group:
                    known[position] = number
        return known


def asked_labels(selector: Labels | None, terms: Iterable[NodeSelectorTerm]) -> frozenset[str] | None:
    """Return the labels that a selector and terms ask about; None if a term asks for nodes by name."""
    asked = set(selector or ())
    for term in terms:
        if term.fields:
            return None
        asked.update(requirement.key for requirement in term.expressions)
    return frozenset(asked)
