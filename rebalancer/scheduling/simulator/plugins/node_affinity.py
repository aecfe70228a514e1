"""NodeAffinity: node selector and required affinity refuse, preferred terms score.

Source: the Kubernetes documentation, Assigning Pods to Nodes (`nodeSelector`, node affinity, affinity per profile).
The scores are the sums of the weights of the terms that match; the highest becomes 100.
"""

from collections.abc import Sequence

import numpy as np

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodSpec, PreferredTerm
from rebalancer.cluster.selectors import NodeSelectorTerm, any_term_matches
from rebalancer.scheduling.equivalence import asked_labels
from rebalancer.scheduling.simulator.nodes import ByNode, Nodes, scaled
from rebalancer.scheduling.simulator.plugin import Reasons, Refusals
from rebalancer.scheduling.simulator.state import State

_NAME = "metadata.name"
REASON = ("node(s) didn't match Pod's node affinity/selector",)
ENFORCED = ("node(s) didn't match scheduler-enforced node affinity",)


class NodeAffinity:
    """Refuses nodes that a pod does not select, and scores by what it prefers.

    Args:
        state: the cluster.
        required: terms that the profile adds, None for none.
        preferred: preferred terms that the profile adds.
    """

    name = "NodeAffinity"

    def __init__(
        self,
        state: State,
        required: tuple[NodeSelectorTerm, ...] | None = None,
        preferred: tuple[PreferredTerm, ...] = (),
    ) -> None:
        self._state = state
        self._required = required
        self._preferred = preferred
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
            return ENFORCED
        return () if spec.selects_node(node.labels, node.name) else REASON

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
        """Return the sums of the weights that match, by index of the node."""
        sums = np.zeros(len(self._state.nodes), dtype=np.int64)
        for group in self._state.alike.groups(asked_labels(None, (each.term for each in terms))):
            sums[group] = _weight(terms, self._state.nodes[group[0]])
        return sums


def _weight(terms: Sequence[PreferredTerm], node: Node) -> int:
    return sum(each.weight for each in terms if each.term.matches(node.labels, node.name))


def named_nodes(spec: PodSpec) -> frozenset[str] | None:
    """Return the nodes that the required affinity names, None where it does not name them all.

    Each alternative must ask for `metadata.name`; the scheduler then looks at these nodes only.
    """
    if not spec.node_terms:
        return None
    found: set[str] = set()
    for term in spec.node_terms:
        fields = [set(each.values) for each in term.fields if each.key == _NAME and each.operator == "In"]
        if not fields:
            return None
        found |= set.intersection(*fields)
    return frozenset(found)
