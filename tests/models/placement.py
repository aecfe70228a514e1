"""What pods may run where and which may go, by the letter of strategies.md 2: slow and obvious on purpose.

Only the values of the model are used (their fields), none of their rules.
"""

from dataclasses import dataclass

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodSpec, SpreadConstraint
from rebalancer.cluster.selectors import LabelSelector, NodeSelectorTerm, Requirement
from rebalancer.cluster.taints import Taint, Toleration


@dataclass
class World:
    """Nodes by name, pods that are still there, labels by namespace, and whether the evictor's nodeFit is on."""

    nodes: list[Node]
    pods: list[Pod]
    namespaces: dict[str, dict[str, str]] | None = None
    node_fit: bool = False

    def __post_init__(self) -> None:
        self.nodes = sorted(self.nodes, key=lambda node: node.name)
        self.pods = sorted(self.pods, key=age)

    def active(self, node: Node) -> list[Pod]:
        return [pod for pod in self.pods if pod.node == node.name and pod.phase not in ("Succeeded", "Failed")]

    def node(self, pod: Pod) -> Node:
        return next(node for node in self.nodes if node.name == pod.node)

    def passes_filter(self, pod: Pod) -> bool:
        if pod.terminating:
            return False
        critical = pod.spec.priority is not None and pod.spec.priority >= 2_000_000_000
        return pod.evict_annotation or (bool(pod.owners) and not critical and not pod.spec.local_storage)

    def passes_pre_eviction_filter(self, pod: Pod) -> bool:
        return not self.node_fit or self.fits_any_other(pod, self.nodes)

    def fits_any_other(self, pod: Pod, nodes: list[Node]) -> bool:
        return any(self.fits(pod, node) for node in nodes if node.name != pod.node)

    def fits(self, pod: Pod, node: Node) -> bool:
        """2.9."""
        if node.unschedulable or not matches_node(pod.spec, node) or not tolerates(pod.spec.tolerations, node.taints):
            return False
        residents = self.active(node)
        if any(self._repels(pod, node, other) for other in residents):
            return False
        if node.name == pod.node:
            return True
        needs = {**pod.spec.requests, "pods": 1}
        used = [{**other.spec.requests, "pods": 1} for other in residents]
        free = {name: node.allocatable.get(name, 0) - sum(each.get(name, 0) for each in used) for name in needs}
        return all(amount <= free[name] for name, amount in needs.items())

    def _repels(self, pod: Pod, node: Node, other: Pod) -> bool:
        return other.name != pod.name and any(
            term.topology_key in node.labels
            and other.namespace in (term.namespaces or (pod.namespace,))
            and selected(term.selector, other.labels)
            for term in pod.spec.anti_affinity
        )


def selected(selector: LabelSelector | None, labels: dict[str, str]) -> bool:
    """Nothing for no selector, everything for an empty one."""
    return selector is not None and all(holds(each, labels) for each in selector.requirements)


def holds(requirement: Requirement, labels: dict[str, str]) -> bool:
    value = labels.get(requirement.key)
    if requirement.operator == "In":
        return value is not None and value in requirement.values
    if requirement.operator == "NotIn":
        return value is None or value not in requirement.values
    if requirement.operator == "Exists":
        return value is not None
    if requirement.operator == "DoesNotExist":
        return value is None
    return False


def term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    fields = {"metadata.name": node.name}
    return bool(term.expressions or term.fields) and (
        all(holds(each, node.labels) for each in term.expressions) and all(holds(each, fields) for each in term.fields)
    )


def matches_node(spec: PodSpec, node: Node) -> bool:
    """2.8: all pairs of nodeSelector, and some term of the required affinity if there is one."""
    if any(node.labels.get(key) != value for key, value in (spec.node_selector or {}).items()):
        return False
    return spec.node_terms is None or any(term_matches(term, node) for term in spec.node_terms)


def tolerates(tolerations: tuple[Toleration, ...], taints: tuple[Taint, ...]) -> bool:
    """All NoSchedule and NoExecute taints are tolerated; `Exists` and `Equal` are all that the tests use."""
    hard = [taint for taint in taints if taint.effect in ("NoSchedule", "NoExecute")]
    return all(any(tolerated(each, taint) for each in tolerations) for taint in hard)


def tolerated(toleration: Toleration, taint: Taint) -> bool:
    return (
        toleration.effect in ("", taint.effect)
        and toleration.key in ("", taint.key)
        and (toleration.operator == "Exists" or toleration.value == taint.value)
    )


def age(pod: Pod) -> tuple[object, ...]:
    """The oldest first, then by namespace and name."""
    return pod.created, pod.namespace, pod.name


def importance(pod: Pod) -> tuple[object, ...]:
    """2.4."""
    qos = ["BestEffort", "Burstable", "Guaranteed"].index(pod.qos)
    return pod.spec.priority is not None, pod.spec.priority or 0, qos, pod.prefer_no_eviction


def cheapest_first(pods: list[Pod]) -> list[Pod]:
    return sorted(pods, key=lambda pod: (importance(pod), age(pod)))


def counts_there(spec: PodSpec, constraint: SpreadConstraint, node: Node) -> bool:
    """Whether a spread constraint of a pod counts what is on a node."""
    if constraint.node_affinity_policy == "Honor" and not matches_node(spec, node):
        return False
    return constraint.node_taints_policy != "Honor" or tolerates(spec.tolerations, node.taints)
