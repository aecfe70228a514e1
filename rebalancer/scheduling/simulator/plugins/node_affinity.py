"""NodeAffinity: node selector and required affinity refuse, preferred terms score.

Source: the Kubernetes documentation, Assigning Pods to Nodes (`nodeSelector`, node affinity, affinity per profile).
The scores are the sums of the weights of the terms that match; the highest becomes 100.
"""

from collections.abc import Sequence

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodSpec, PreferredTerm
from rebalancer.cluster.selectors import NodeSelectorTerm, any_term_matches
from rebalancer.scheduling.simulator.arithmetic import normalized
from rebalancer.scheduling.simulator.plugin import NO_REFUSALS, Refusals
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

    def refusals(self, pod: Pod, nodes: Sequence[int]) -> Refusals:
        """Return the nodes that the profile or the pod does not select."""
        spec = pod.spec
        if self._required is None and spec.node_terms is None and not spec.node_selector:
            return NO_REFUSALS
        reasons = ((index, self._reason(spec, self._state.nodes[index])) for index in nodes)
        return {index: reason for index, reason in reasons if reason}

    def _reason(self, spec: PodSpec, node: Node) -> tuple[str, ...]:
        if self._required is not None and not any_term_matches(self._required, node.labels, node.name):
            return ENFORCED
        return () if spec.selects_node(node.labels, node.name) else REASON

    def scores(self, pod: Pod, nodes: Sequence[int]) -> list[int] | None:
        """Return the sums of the weights that match, scaled so that the highest is 100."""
        terms = [each for each in (*self._preferred, *pod.spec.preferred) if each.weight]
        if not terms:
            return None
        return normalized([_weight(terms, self._state.nodes[index]) for index in nodes])


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
