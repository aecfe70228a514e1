"""How relief fills nodes that are below a band around the mean, told one rule after the other, in exact fractions."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod

if TYPE_CHECKING:
    from tests.models.relief import LowRelief

Percents = Mapping[str, Fraction]


class Filling:
    """The last part of relief; it asks relief what nodes use, and lets it move pods."""

    def __init__(self, relief: LowRelief) -> None:
        self.relief = relief
        self.kept = relief.above_low(Fraction(1, 2))
        self.moves_left = 0

    def run(self) -> None:
        """Nodes above the mean give where the expected gain is largest while some node is below its band."""
        self.relief.goal = self.relief.mean
        givers = self.relief.over()
        schedulable = [node for node in self.relief.nodes if not node.unschedulable]
        self.moves_left = min(8 * len(self.relief.low_nodes(self.relief.low)), ceil(Fraction(8, 10) * len(schedulable)))
        for share in (Fraction(1, 2), Fraction(9, 10), Fraction(1)):
            for least in (Fraction(4), Fraction(2), Fraction(1), Fraction(3, 10)):
                if self.relief.low_nodes(self.relief.low):
                    self.relief.ceilings = self.relief.above_mean(share)
                    self.ask_all(givers, least)

    def ask_all(self, givers: list[Node], least: Fraction) -> None:
        """Ask one node after the other, until so many in a row have had nothing to give."""
        in_vain = 0
        for node in givers:
            if in_vain == 20:
                return
            moves_left = self.moves_left
            self.give(node, least, self.relief.low if least < 1 else self.relief.mean)
            in_vain = in_vain + 1 if self.moves_left == moves_left else 0

    def give(self, node: Node, least: Fraction, wanted: Percents) -> None:
        candidates = [pod for pod in self.relief.world.active(node) if self.relief.is_candidate(pod)]
        for dearness in sorted({self.relief.dearness(pod) for pod in candidates}):
            group = self.relief.by_age([pod for pod in candidates if self.relief.dearness(pod) == dearness])
            promised = {pod.key: self.gain(pod, node) for pod in group}
            while self.relief.low_nodes(wanted) and self.moves_left > 0:
                pod = self.most_promising(group, promised, node)
                if pod is None:
                    break  # nobody of this dearness brings anything; dearer ones may
                if promised[pod.key] <= least:
                    return
                group.remove(pod)
                self.moves_left -= 1
                if self.relief.drained[node.name] == self.relief.limit:
                    return
                lifted = [self.lifted(pod, place) for place in self.relief.prospects(pod)]
                count_on = min if len(self.relief.low_nodes(self.relief.low)) <= 3 else max
                place = self.relief.prospects(pod)[lifted.index(count_on(lifted))]
                self.relief.drained[node.name] += self.relief.move(pod, place)

    def most_promising(self, group: list[Pod], promised: dict[tuple[str, str], Fraction], node: Node) -> Pod | None:
        """The pod that promised most and keeps its promise; those that do not, promise less from then on."""
        while group:
            pod = max(group, key=lambda each: promised[each.key])
            before, promised[pod.key] = promised[pod.key], self.gain(pod, node)
            if promised[pod.key] >= before:
                return pod if promised[pod.key] > Fraction(3, 10) else None
        return None

    def gain(self, pod: Pod, node: Node) -> Fraction:
        places = self.relief.prospects(pod)
        if not places:
            return Fraction(0)
        amounts = {name: self.relief.level(node, name) for name in self.kept}
        before = self.relief.lack(node, self.kept, amounts)
        after = self.relief.lack(
            node, self.kept, {name: amounts[name] - self.relief.of_pod(pod, name) for name in self.kept}
        )
        lifted = sum((self.lifted(pod, place) for place in places), Fraction(0))
        return round(lifted / len(places) - (after - before), 9)

    def lifted(self, pod: Pod, place: Node) -> Fraction:
        """What a node lacks less."""
        amounts = {name: self.relief.at_peak(place, name) for name in self.relief.mean}
        more = {name: amounts[name] + self.relief.of_pod(pod, name) for name in self.relief.mean}
        return self.relief.lack(place, self.relief.mean, amounts) - self.relief.lack(place, self.relief.mean, more)
