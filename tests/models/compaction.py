"""Compaction as its rules are told, one after the other, in exact fractions: slow and obvious on purpose."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import msgspec

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from tests.models.kube_scheduler import Kube
from tests.models.placement import age
from tests.models.relief import LowRelief, likely


class PackingKube(Kube):
    """The same scheduler, but it likes full nodes: MostAllocated."""

    def _part(self, asked: int, offered: int) -> int:
        return min(asked, offered)


@dataclass
class Compacting(LowRelief):
    """HighNodeUtilization with `selection: compaction`.  Its figures, peaks and usage are those of relief."""

    keep_free: Mapping[str, Fraction] = field(default_factory=dict)  # percent by resource
    label: str = ""  # of node groups; empty if all nodes may be removed
    keep_nodes: int = 0  # of each group
    packs: bool = False  # whether the scheduler fills nodes
    by_requests: bool = False  # whether the figures are requests

    def emptied(self) -> list[tuple[str, str]]:
        self.high, self.ceilings = self.targets, self.targets
        self.in_use = {node.name for node in self.world.nodes if self.occupants(node)}
        self.reached: set[str] = set()
        under = [node for node in self.nodes if self.fullness(node, bounded=True) is not None]
        open_nodes = [node for node in self.nodes if node.name in self.in_use and not node.unschedulable]
        if len(under) <= self.number_of_nodes or not open_nodes:
            return self.moves
        removable = [node for node in under if not node.keeping and (not self.label or self.label in node.labels)]
        candidates = [node for node in removable if node.name in self.in_use]
        order = {node.name: (len(self.occupants(node)), self.fullness(node), node.name) for node in candidates}
        for node in sorted(candidates, key=lambda each: order[each.name]):
            pods = self.largest_first(node)
            if node.name not in self.reached and self.leaves_enough(node, pods) and self.all_may_go(pods):
                self.empty(node, pods)
        return self.moves

    def occupants(self, node: Node) -> list[Pod]:
        """Not what comes in this cycle."""
        return [
            pod
            for pod in self.world.active(node)
            if pod.name[0] != "+"
            and not (pod.terminating or pod.mirror or pod.static)
            and not any(owner.kind == "DaemonSet" for owner in pod.owners)
        ]

    def fullness(self, node: Node, *, bounded: bool = False) -> Fraction | None:
        """The sum of the node's percents; None if it has to be within all thresholds and is not."""
        percents = {name: self.percent(node, name, self.level(node, name)) for name in self.thresholds}
        if bounded and any(percents[name] > self.thresholds[name] for name in percents):
            return None
        return sum(percents.values(), Fraction(0))

    def largest_first(self, node: Node) -> list[Pod]:
        def size(pod: Pod) -> Fraction:
            amounts = {**self.takes(pod), "pods": 1}
            return sum((self.percent(node, name, amount) for name, amount in amounts.items()), Fraction(0))

        return sorted(self.occupants(node), key=lambda pod: (-size(pod), age(pod)))

    def leaves_enough(self, node: Node, pods: list[Pod]) -> bool:
        in_use = [each for each in self.world.nodes if each.name in self.in_use]
        group = [each for each in in_use if self.label and each.labels.get(self.label) == node.labels[self.label]]
        if self.label and len(group) <= self.keep_nodes:
            return False
        rest = [each for each in in_use if each is not node and not each.unschedulable]
        for name, percent in self.keep_free.items():
            offered = sum(each.allocatable[name] for each in rest)
            asked = [pod for each in rest for pod in self.world.active(each)] + pods
            free = offered - sum(pod.spec.requests.get(name, 0) for pod in asked)
            if free * 100 < percent * offered or not offered:
                return False
        return True

    def all_may_go(self, pods: list[Pod]) -> bool:
        if any(pod.holding for pod in pods) or (self.usage is None and len(pods) > 1):
            return False
        lost, self.lost = self.lost, Counter(self.lost)
        try:
            for pod in pods:
                if not self.may_move(pod) or not self.may_be_lost(pod):
                    return False
                self.lost[pod.namespace, pod.owners] += 1
            return True
        finally:
            self.lost = lost

    def may_move(self, pod: Pod) -> bool:
        if self.by_requests:
            return self.world.passes_filter(pod) and not self.is_newcomer(pod)
        return self.is_candidate(pod)

    def empty(self, node: Node, pods: list[Pod]) -> None:
        """Try all pods out; carry it out if each has somewhere to go."""
        before = (list(self.world.pods), list(self.left), {name: Counter(each) for name, each in self.arrived.items()})
        self.world.pods = [pod for pod in self.world.pods if pod not in pods]
        self.left += pods
        moves, reached = [], set()
        for pod in pods:
            nodes = self.takers(pod, node)
            if not nodes:
                self.world.pods, self.left, self.arrived = before
                return
            self.world.pods.append(msgspec.structs.replace(pod, name=f"+{pod.name}", node=nodes[0].name))
            self.arrived[nodes[0].name].update({**self.takes(pod), "pods": 1})
            moves.append((str(pod), nodes[0].name))
            reached |= {each.name for each in nodes}
        self.moves += moves
        self.reached |= reached
        self.in_use = self.in_use - {node.name} | {name for _, name in moves}
        for pod in pods:
            self.lost[pod.namespace, pod.owners] += 1

    def takers(self, pod: Pod, node: Node) -> list[Node]:
        """Where the pod would land; nowhere if no node in use takes it, or if the scheduler may do harm."""
        empty = {each.name for each in self.world.nodes if each.name not in self.in_use} | {node.name}
        allowed = [
            each
            for each in self.nodes
            if each.name not in empty and not each.unschedulable and self.has_room(pod, each)
        ]
        if not allowed or not self.scheduler_known:
            return sorted(allowed, key=lambda each: (self.unrequested(each), each.name))[:1]
        rest = [each for each in self.left if each is not pod]
        expected = likely(self.world, pod, rest, self.services, PackingKube if self.packs else Kube)
        harmless = all(
            each.name not in empty
            and not each.unschedulable
            and each in self.nodes
            and self.is_within(pod, each, self.ceilings)
            for each in expected
        )
        return expected if harmless else []
