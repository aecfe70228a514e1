"""kube-scheduler's default profile of 1.36, told one node after the other: slow and obvious on purpose.

Every question looks at all pods again.  Only the values of the model are used, and `holds` and `selected` of placement.
"""

from dataclasses import dataclass, field
from math import floor, log

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodAffinityTerm, SpreadConstraint
from rebalancer.cluster.selectors import LabelSelector
from tests.models.placement import counts_there, holds, matches_node, selected, term_matches, tolerates

UNSAID = {"cpu": 100, "memory": 200 * 1024 * 1024}
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
MB = 1024 * 1024
WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}


@dataclass
class Kube:
    """Nodes, the pods that take room on them, namespaces, and what spreads pods by default."""

    nodes: list[Node]
    pods: list[Pod]
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)
    services: list[tuple[str, LabelSelector]] = field(default_factory=list)

    def on(self, node: Node) -> list[Pod]:
        return [pod for pod in self.pods if pod.node == node.name]

    def node_of(self, pod: Pod) -> Node:
        return next(node for node in self.nodes if node.name == pod.node)

    def winners(self, pod: Pod) -> set[str]:
        nodes = self.feasible(pod)
        totals = {node.name: sum(scores[node.name] for scores in self.scores(pod).values()) for node in nodes}
        return {name for name, total in totals.items() if total == max(totals.values())}  # none if none is feasible

    def feasible(self, pod: Pod) -> list[Node]:
        checks = (self.open, self.selects, self.ports, self.room, self.evenly, self.near, self.apart)
        return [node for node in self.nodes if all(check(pod, node) for check in checks)]

    def open(self, pod: Pod, node: Node) -> bool:
        cordon = any(each.key in ("", "node.kubernetes.io/unschedulable") for each in pod.spec.tolerations)
        return (cordon or not node.unschedulable) and tolerates(pod.spec.tolerations, node.taints)

    def selects(self, pod: Pod, node: Node) -> bool:
        return matches_node(pod.spec, node)

    def ports(self, pod: Pod, node: Node) -> bool:
        taken = [port for each in self.on(node) for port in each.spec.placement.host_ports]
        return not any(port.port == other.port for port in pod.spec.placement.host_ports for other in taken)

    def room(self, pod: Pod, node: Node) -> bool:
        residents = self.on(node)
        if len(residents) + 1 > node.allocatable.get("pods", 0):
            return False
        for name, amount in pod.spec.requests.items():
            used = sum(each.spec.requests.get(name, 0) for each in residents)
            if amount > 0 and used + amount > node.allocatable.get(name, 0):
                return False
        return True

    def evenly(self, pod: Pod, node: Node) -> bool:
        hard = [each for each in pod.spec.spread if each.when_unsatisfiable == "DoNotSchedule"]
        if any(each.topology_key not in node.labels for each in hard):
            return False
        return all(self._evenly(pod, node, each, hard) for each in hard)

    def _evenly(self, pod: Pod, node: Node, constraint: SpreadConstraint, hard: list[SpreadConstraint]) -> bool:
        key, selector = constraint.topology_key, constraint.selector
        counts: dict[str, int] = {}
        for each in self.nodes:
            if all(other.topology_key in each.labels for other in hard) and counts_there(pod.spec, constraint, each):
                counts.setdefault(each.labels[key], 0)
                counts[each.labels[key]] += self.matching(pod.namespace, selector, each)
        fewest = min(counts.values(), default=10**9)
        if len(counts) < (constraint.min_domains or 1):
            fewest = 0
        here = counts.get(node.labels[key], 0) + selected(selector, pod.labels)
        return here - fewest <= constraint.max_skew

    def matching(self, namespace: str, selector: LabelSelector | None, node: Node) -> int:
        there = [each for each in self.on(node) if each.namespace == namespace and not each.terminating]
        return sum(selected(selector, each.labels) for each in there)

    def takes(self, term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
        own = [owner.namespace] if not term.namespaces and term.namespace_selector is None else []
        by_labels = term.namespace_selector is not None and all(
            holds(each, self.namespaces.get(other.namespace, {})) for each in term.namespace_selector.requirements
        )
        return (other.namespace in [*term.namespaces, *own] or by_labels) and selected(term.selector, other.labels)

    def same_domain(self, key: str, one: Node, other: Node) -> bool:
        return key in one.labels and one.labels[key] == other.labels.get(key)

    def near(self, pod: Pod, node: Node) -> bool:
        terms = pod.spec.placement.affinity
        if any(term.topology_key not in node.labels for term in terms):
            return False
        good = [each for each in self.pods if all(self.takes(term, pod, each) for term in terms)]
        placed = [(term, each) for term in terms for each in good if term.topology_key in self.node_of(each).labels]
        if not placed and all(self.takes(term, pod, pod) for term in terms):
            return True
        return all(
            any(self.same_domain(term.topology_key, node, self.node_of(each)) for each in good) for term in terms
        )

    def apart(self, pod: Pod, node: Node) -> bool:
        for other in self.pods:
            mine = [each for each in pod.spec.anti_affinity if self.takes(each, pod, other)]
            theirs = [each for each in other.spec.anti_affinity if self.takes(each, other, pod)]
            if any(self.same_domain(each.topology_key, node, self.node_of(other)) for each in [*mine, *theirs]):
                return False
        return True

    def scores(self, pod: Pod) -> dict[str, dict[str, int]]:
        """Weighted scores of the feasible nodes, plugin by plugin; those that sit out are not there."""
        nodes = self.feasible(pod)
        raw = {
            "TaintToleration": up_to_100({node.name: -soft_taints(pod, node) for node in nodes}, turned=True),
            "NodeAffinity": self._node_affinity(pod, nodes),
            "NodeResourcesFit": {node.name: self._least_allocated(pod, node) for node in nodes},
            "PodTopologySpread": self._spread(pod, nodes),
            "InterPodAffinity": self._inter_pod(pod, nodes),
            "NodeResourcesBalancedAllocation": self._balanced(pod, nodes),
            "ImageLocality": {node.name: self._images(pod, node) for node in nodes},
        }
        return {
            plugin: {name: WEIGHTS[plugin] * score for name, score in scores.items()}
            for plugin, scores in raw.items()
            if scores is not None
        }

    def _node_affinity(self, pod: Pod, nodes: list[Node]) -> dict[str, int] | None:
        if not pod.spec.preferred:
            return None
        wanted = pod.spec.preferred
        return up_to_100({node.name: sum(w.weight for w in wanted if term_matches(w.term, node)) for node in nodes})

    def _least_allocated(self, pod: Pod, node: Node) -> int:
        parts = []
        for name, unsaid in UNSAID.items():
            asked = sum(each.spec.requests.get(name, unsaid) for each in [*self.on(node), pod])
            parts.append(self._part(asked, node.allocatable[name]) * 100 // node.allocatable[name])
        return sum(parts) // 2

    def _part(self, asked: int, offered: int) -> int:
        return max(offered - asked, 0)

    def _balanced(self, pod: Pod, nodes: list[Node]) -> dict[str, int] | None:
        if not any(pod.spec.requests.get(name) for name in UNSAID):
            return None
        return {
            node.name: 50 + (50 + evenness(node, [*self.on(node), pod]) - evenness(node, self.on(node))) // 2
            for node in nodes
        }

    def _images(self, pod: Pod, node: Node) -> int:
        total = 0
        for image in pod.spec.placement.images:
            having = [each for each in self.nodes if any(image in known.names for known in each.images)]
            if node in having:
                size = next(known.size for known in having[0].images if image in known.names)
                total += int(size * (len(having) / len(self.nodes)))
        most = 1000 * MB * max(len(pod.spec.placement.images), 1)
        return 100 * (max(23 * MB, min(total, most)) - 23 * MB) // (most - 23 * MB)

    def _spread(self, pod: Pod, nodes: list[Node]) -> dict[str, int] | None:
        soft = [each for each in pod.spec.spread if each.when_unsatisfiable == "ScheduleAnyway"]
        all_keys = bool(pod.spec.spread)
        if not pod.spec.spread:
            soft = self._defaults(pod)
        if not soft:
            return None
        has_all = lambda node: all(each.topology_key in node.labels for each in soft)  # noqa: E731
        scored = [node for node in nodes if has_all(node) or not all_keys]
        counted = [node for node in self.nodes if has_all(node) or not all_keys]
        raw = {}
        for node in scored:
            total = 0.0
            for each in soft:
                if each.topology_key not in node.labels:
                    continue
                if each.topology_key == HOST:
                    domains, count = len(scored), self.matching(pod.namespace, each.selector, node)
                else:
                    domains = len({other.labels.get(each.topology_key, "") for other in scored})
                    count = sum(
                        self.matching(pod.namespace, each.selector, other)
                        for other in counted
                        if self.same_domain(each.topology_key, node, other) and counts_there(pod.spec, each, other)
                    )
                total += count * log(domains + 2) + (each.max_skew - 1)
            raw[node.name] = floor(total) + (total - floor(total) >= 0.5)
        most, least = max(raw.values(), default=0), min(raw.values(), default=0)
        turned = {name: 100 * (most + least - value) // most if most else 100 for name, value in raw.items()}
        return {node.name: turned.get(node.name, 0) for node in nodes}

    def _defaults(self, pod: Pod) -> list[SpreadConstraint]:
        selecting = [each for namespace, each in self.services if namespace == pod.namespace]
        requirements = [each for found in selecting if selected(found, pod.labels) for each in found.requirements]
        if not requirements:
            return []
        together = LabelSelector(tuple(sorted(set(requirements))))
        return [SpreadConstraint(skew, key, "ScheduleAnyway", together) for skew, key in ((3, HOST), (5, ZONE))]

    def _inter_pod(self, pod: Pod, nodes: list[Node]) -> dict[str, int] | None:
        worth = []  # domains and what they are worth
        for other in self.pods:
            there = self.node_of(other)
            for owner, selected_pod in ((pod, other), (other, pod)):
                terms = [(each.term, each.weight) for each in owner.spec.placement.preferred_affinity]
                terms += [(each.term, -each.weight) for each in owner.spec.placement.preferred_anti_affinity]
                terms += [(each, 1) for each in owner.spec.placement.affinity if owner is other]
                worth += [
                    (term.topology_key, there, weight)
                    for term, weight in terms
                    if self.takes(term, owner, selected_pod) and term.topology_key in there.labels
                ]
        if not worth:
            return None
        raw = {node.name: sum(w for key, at, w in worth if self.same_domain(key, node, at)) for node in nodes}
        most, least = max(raw.values()), min(raw.values())
        if most == least:
            return dict.fromkeys(raw, 0)
        return {name: int(100 * ((value - least) / (most - least))) for name, value in raw.items()}


def soft_taints(pod: Pod, node: Node) -> int:
    """Those that are not tolerated, by tolerations of that effect or of any."""
    held = [each for each in pod.spec.tolerations if each.effect in ("", "PreferNoSchedule")]
    soft = [each for each in node.taints if each.effect == "PreferNoSchedule"]
    return sum(not any(each.tolerates(taint) for each in held) for taint in soft)


def up_to_100(raw: dict[str, int], *, turned: bool = False) -> dict[str, int]:
    most = max((abs(value) for value in raw.values()), default=0)
    shares = {name: 100 * abs(value) // most if most else 0 for name, value in raw.items()}
    return {name: 100 - share for name, share in shares.items()} if turned else shares


def evenness(node: Node, pods: list[Pod]) -> int:
    shares = [min(sum(pod.spec.requests.get(name, 0) for pod in pods) / node.allocatable[name], 1.0) for name in UNSAID]
    return int((1 - abs(shares[0] - shares[1]) / 2) * 100)
