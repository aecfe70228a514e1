"""Specs that ask the same of nodes, and nodes that such a question cannot tell apart: answered once for all of them.

Example: of 5,000 nodes 40 have a taint, and 300 specs ask for the label `tier`, which is gold or silver, with the same
tolerations.  That is one demand and up to four groups of nodes: selector and tolerations are checked four times, not
1,500,000 times.
"""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import PodSpec
from rebalancer.cluster.selectors import Labels, NodeSelectorTerm

T = TypeVar("T")


class BySpec(Generic[T]):
    """What is worked out once for each spec, which all replicas share."""

    def __init__(self, work_out: Callable[[PodSpec], T]) -> None:
        self._work_out = work_out
        self._known: dict[int, tuple[PodSpec, T]] = {}

    def of(self, spec: PodSpec) -> T:
        """Return it, by the identity of the spec."""
        known = self._known.get(id(spec))
        if known is None:  # the entry keeps the spec alive, so that no other object can get its id
            known = self._known[id(spec)] = (spec, self._work_out(spec))
        return known[1]


class Demands(BySpec[int]):
    """Numbers specs by what they ask of a node's taints and labels: tolerations, node selector, required affinity."""

    def __init__(self) -> None:
        super().__init__(self._number)
        self._numbers: dict[object, int] = {}

    def _number(self, spec: PodSpec) -> int:
        key = (frozenset(spec.tolerations), spec.node_terms, frozenset((spec.node_selector or {}).items()))
        return self._numbers.setdefault(key, len(self._numbers))


class EquivalentNodes:
    """Groups a fixed list of nodes."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._nodes = tuple(nodes)
        self.labels = frozenset(key for node in self._nodes for key in node.labels)  # the keys that any node has
        self._known: dict[frozenset[str] | None, list[list[int]]] = {}

    def groups(self, keys: frozenset[str] | None) -> list[list[int]]:
        """Return positions of nodes by their taints and the values of these labels; without keys, each alone.

        Labels that no node has do not count: pods may ask for any.
        """
        keys = None if keys is None else keys & self.labels
        known = self._known.get(keys)
        if known is None:
            groups: dict[object, list[int]] = {}
            for position, node in enumerate(self._nodes):
                values = position if keys is None else tuple(node.labels.get(key) for key in sorted(keys))
                groups.setdefault((node.taints, values), []).append(position)
            known = self._known[keys] = list(groups.values())
        return known


def asked_labels(selector: Labels | None, terms: Iterable[NodeSelectorTerm]) -> frozenset[str] | None:
    """Return the labels that a selector and terms ask about; None if a term asks for nodes by name."""
    asked = set(selector or ())
    for term in terms:
        if term.fields:
            return None
        asked.update(requirement.key for requirement in term.expressions)
    return frozenset(asked)
