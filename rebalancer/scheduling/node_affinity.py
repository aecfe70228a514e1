"""Node affinity: which requirements of a pod a node does not meet, as text, and which nodes it prefers, by weight."""

from collections.abc import Sequence

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import PodSpec, PreferredTerm
from rebalancer.cluster.selectors import NodeSelectorTerm, Requirement


def unmet(spec: PodSpec, node: Node) -> str:
    """Return what the node lacks of the node selector and required affinity, as kubectl writes selectors.

    Alternatives are joined by "or"; the text is empty if the node meets them.
    """
    if spec.selects_node(node.labels, node.name):
        return ""
    pairs = [f"{key}={value}" for key, value in (spec.node_selector or {}).items() if node.labels.get(key) != value]
    return ",".join(pairs) or " or ".join(_unmet(term, node) for term in spec.node_terms or ()) or "nothing there is"


def _unmet(term: NodeSelectorTerm, node: Node) -> str:
    missing = [each for each in term.expressions if not NodeSelectorTerm((each,)).matches(node.labels, node.name)]
    missing += [each for each in term.fields if not NodeSelectorTerm((), (each,)).matches(node.labels, node.name)]
    return ",".join(map(_text, missing)) or "nothing there is"


def _text(requirement: Requirement) -> str:
    key, operator, values = requirement.key, requirement.operator, requirement.values
    match operator, values:
        case "In", (value,):
            return f"{key}={value}"
        case "NotIn", (value,):
            return f"{key}!={value}"
        case "Gt" | "Lt", (value,):
            return f"{key}{'>' if operator == 'Gt' else '<'}{value}"
        case "Exists", ():
            return key
        case "DoesNotExist", ():
            return f"!{key}"
    return f"{key} {operator.lower()} ({','.join(values)})"


class Preferences:
    """The nodes that pods prefer most; worked out once for each different preference."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._best: dict[tuple[PreferredTerm, ...], tuple[int, Node]] = {}

    @staticmethod
    def weight(spec: PodSpec, node: Node) -> int:
        """Return the sum of the weights of the preferred terms that the node matches."""
        return sum(each.weight for each in spec.preferred if each.term.matches(node.labels, node.name))

    def best(self, spec: PodSpec) -> tuple[int, Node]:
        """Return the greatest weight and the first node that has it.

        Raises:
            ValueError: there are no nodes.
        """
        known = self._best.get(spec.preferred)
        if known is None:
            weights = ((self.weight(spec, node), node) for node in self._nodes)
            known = self._best[spec.preferred] = max(weights, key=lambda each: each[0])
        return known
