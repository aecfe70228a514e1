"""Whether a pod could run on a node, and if not, why: the descheduler's NodeFit.

Checked in this order: the node is not cordoned; node selector and required node affinity; hard taints; the pod's own
required anti-affinity against the pods on that node; room by requests, which is not checked on the pod's own node.
Not checked: pod affinity, the residents' anti-affinity, spread, volumes, host ports, preferences.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodSpec, PreferredTerm
from rebalancer.cluster.resources import PODS
from rebalancer.cluster.selectors import NodeSelectorTerm, Requirement
from rebalancer.cluster.taints import untolerated
from rebalancer.eviction.causes import Cause, Code, cause
from rebalancer.scheduling.equivalence import EquivalentNodes, asked_labels
from rebalancer.scheduling.repellers import Repellers

#: The most obstacles that are listed; each may name a different pod, and nobody reads more.
_MOST_OBSTACLES = 16
#: Details that differ from node to node although the obstacle is the same.
_OF_ONE_NODE = ("requested", "free")

#: A cause without the details of a single node.
Obstacle: TypeAlias = tuple[Code, tuple[tuple[str, Any], ...]]


def why_placement_fails(spec: PodSpec, node: Node) -> Cause | None:
    """Return why no pod with this spec may be placed on the node, no matter what runs there; None if one may."""
    if node.unschedulable:
        return cause(Code.CORDONED)
    if not spec.selects_node(node.labels, node.name):
        return cause(Code.NODE_AFFINITY)
    taint = untolerated(spec.tolerations, node.taints)
    return cause(Code.TAINT, taint=str(taint)) if taint else None


def why_too_full(spec: PodSpec, free: Callable[[str], int]) -> Cause | None:
    """Return the first request that does not fit, given what is free by resource name; None if all fit."""
    if free(PODS) < 1:
        return cause(Code.NO_POD_SLOT)
    for name, request in spec.requests.items():
        if request > free(name):
            return cause(Code.INSUFFICIENT, resource=name, requested=request, free=free(name))
    return None


def why_repelled(pod: Pod, node: Node, residents: Iterable[Pod]) -> Cause | None:
    """Return the resident that the pod's own required anti-affinity excludes; None if there is none."""
    terms = [(selector, namespaces) for key, selector, namespaces in Repellers.terms(pod) if key in node.labels]
    for resident in residents if terms else ():
        asked = (selector for selector, namespaces in terms if resident.namespace in namespaces)
        if resident.name != pod.name and any(selector.matches(resident.labels) for selector in asked):
            return cause(Code.ANTI_AFFINITY, pod=str(resident))
    return None


def obstacles(causes: Iterable[Cause | None]) -> dict[str, Any]:
    """Return why nodes do not take a pod, as the detail `obstacles`: the most frequent first, with node counts.

    Details that concern a single node are left out.  For example, of three nodes two are cordoned and one lacks 500m of
    cpu: `Cordoned` of 2, `Insufficient` cpu of 1.
    """
    return named(most_frequent(Counter(obstacle(each) for each in causes if each).items()))


def obstacle(cause: Cause) -> Obstacle:
    """Return what a cause has in common with the same one of another node."""
    return cause.code, tuple((name, value) for name, value in cause.details.items() if name not in _OF_ONE_NODE)


def most_frequent(counts: Iterable[tuple[Obstacle, int]], more: int = 0) -> list[tuple[Obstacle, int]]:
    """Return the obstacles that are listed, and so many more, the most frequent first."""
    return sorted(counts, key=lambda each: (-each[1], each[0]))[: _MOST_OBSTACLES + more]


def named(most: Iterable[tuple[Obstacle, int]]) -> dict[str, Any]:
    """Return obstacles with their counts as the detail of a cause."""
    return {"obstacles": [{"code": code.value, **dict(details), "count": count} for (code, details), count in most]}


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
        self._nodes, self._alike = nodes, EquivalentNodes(nodes)
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
            groups = self._alike.groups(asked_labels(None, (each.term for each in spec.preferred)))
            weights = ((self.weight(spec, node), node) for node in (self._nodes[group[0]] for group in groups))
            known = self._best[spec.preferred] = max(weights, key=lambda each: each[0])
        return known
