"""How relief fills nodes that are below a band around the mean, told one rule after the other, in exact fractions."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from tests.models.placement import age, matches_node, tolerates

if TYPE_CHECKING:
    from tests.models.relief import LowRelief

Percents = Mapping[str, Fraction]


class Filling:
    """The last part of relief; it asks relief what nodes use, and lets it move pods."""

    def __init__(self, relief: LowRelief) -> None:
        self.relief = relief
        self.kept = relief.above_low(Fraction(1, 2))
        self.moves_left = 0
        self.in_reach: set[str] = set()

    def low(self, floors: Percents) -> list[Node]:
        """Nodes below these floors; of those below the band only the ones that some donor's pod can run on."""
        found = self.relief.low_nodes(floors)
        return [each for each in found if floors is not self.relief.low or each.name in self.in_reach]

    def run(self) -> None:
        """Nodes above the mean give where the expected gain is largest while some node is below its band."""
        self.relief.goal = self.relief.mean
        donors = self.relief.over()
        pods = [pod for node in donors for pod in self.relief.world.active(node) if self.relief.is_candidate(pod)]
        self.in_reach = {
            node.name
            for node in self.relief.nodes
            if any(matches_node(pod.spec, node) and tolerates(pod.spec.tolerations, node.taints) for pod in pods)
        }
        schedulable = [node for node in self.relief.nodes if not node.unschedulable]
        self.moves_left = min(8 * len(self.low(self.relief.low)), ceil(Fraction(8, 10) * len(schedulable)))
        for share in (Fraction(1, 2), Fraction(9, 10), Fraction(1)):
            for least in (Fraction(4), Fraction(2), Fraction(1), Fraction(3, 10)):
                if self.low(self.relief.low):
                    self.relief.ceilings = self.relief.above_mean(share)
                    self.ask_all(donors, least)

    def ask_all(self, donors: list[Node], least: Fraction) -> None:
        """Ask one node after the other, until so many in a row have had nothing to donate."""
        in_vain = 0
        for node in donors:
            if in_vain == 20:
                return
            moves_left = self.moves_left
            self.donate(node, least, self.relief.low if least < 1 else self.relief.mean)
            in_vain = in_vain + 1 if self.moves_left == moves_left else 0

    def donate(self, node: Node, least: Fraction, wanted: Percents) -> None:
        candidates = [pod for pod in self.relief.world.active(node) if self.relief.is_candidate(pod)]
        for cost in sorted({self.relief.cost(pod) for pod in candidates}):
            group = sorted([pod for pod in candidates if self.relief.cost(pod) == cost], key=age)
            expected = {pod.key: self.gain(pod, node) for pod in group}
            group = [pod for pod in group if expected[pod.key] > 0]
            while self.low(wanted) and self.moves_left > 0:
                pod = self.most_useful(group, expected, node)
                if pod is None:
                    break  # no pod of this cost brings anything; costlier ones may
                if expected[pod.key] <= least:
                    return
                group.remove(pod)
                if self.relief.drained[node.name] == self.relief.limit:
                    return
                destinations = self.relief.destinations(pod)
                lifted = [(destination, self.lifted(pod, destination)) for destination in destinations]
                count_on = min if len(self.low(self.relief.low)) <= 3 else max
                expected_gain = count_on(gain for _, gain in lifted)
                destination = max((each for each, gain in lifted if gain == expected_gain), key=self.lacking)
                if self.relief.in_all_worlds(pod, destinations, destination) and self.relief.move(pod, destination):
                    self.relief.drained[node.name] += 1
                    self.moves_left -= 1

    def most_useful(self, group: list[Pod], expected: dict[tuple[str, str], Fraction], node: Node) -> Pod | None:
        """The pod that is expected to bring most and still does; for the others the expectation is lowered.

        One that brings nothing is left out until the next round.
        """
        while group:
            pod = max(group, key=lambda each: expected[each.key])
            before, expected[pod.key] = expected[pod.key], self.gain(pod, node)
            if expected[pod.key] <= 0:
                group.remove(pod)
            elif expected[pod.key] >= before:
                return pod if expected[pod.key] > Fraction(3, 10) else None
        return None

    def gain(self, pod: Pod, node: Node) -> Fraction:
        destinations = self.relief.destinations(pod)
        if not destinations:
            return Fraction(0)
        amounts = {name: self.relief.level(node, name) for name in self.kept}
        before = self.relief.lack(node, self.kept, amounts)
        after = self.relief.lack(
            node, self.kept, {name: amounts[name] - self.relief.of_pod(pod, name) for name in self.kept}
        )
        gains = [round(self.lifted(pod, each) - (after - before), 9) for each in destinations]
        return sum(gains, Fraction(0)) / len(gains) if min(gains) > 0 else Fraction(0)

    def lacking(self, destination: Node) -> Fraction:
        """What a node lacks up to the mean."""
        amounts = {name: self.relief.at_peak(destination, name) for name in self.relief.mean}
        return self.relief.lack(destination, self.relief.mean, amounts)

    def lifted(self, pod: Pod, destination: Node) -> Fraction:
        """What a node lacks less."""
        amounts = {name: self.relief.at_peak(destination, name) for name in self.relief.mean}
        more = {name: amounts[name] + self.relief.of_pod(pod, name) for name in self.relief.mean}
        before = self.relief.lack(destination, self.relief.mean, amounts)
        return before - self.relief.lack(destination, self.relief.mean, more)
