"""Selection by relief as its rules are told, one after the other, in exact fractions: slow and obvious on purpose."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction

import msgspec

from rebalancer.model.objects import Node, Pod
from tests.models.placement import World

Amounts = Mapping[str, int]
Percents = Mapping[str, Fraction]


@dataclass
class LowRelief:
    """LowNodeUtilization by measured usage.

    Attributes:
        figures: by node, what was measured; a node that is missing has no fresh figure.
        peaks: the same at the destination quantile.
        usage: by (namespace, name) of a pod, on the node where the pod is; None if the source knows no pods.
        gone: by node, what pods used that are there no longer, as far as the source knows.
        moves: the pods that went, with the node that each was charged to.
    """

    world: World
    now: datetime
    figures: Mapping[str, Amounts]
    peaks: Mapping[str, Amounts]
    usage: Mapping[tuple[str, str], Amounts] | None
    gone: Mapping[str, Amounts]
    window: timedelta
    thresholds: Percents
    targets: Percents
    deviation: bool = False
    number_of_nodes: int = 0
    limit: int | None = None
    moves: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.nodes = [node for node in self.world.nodes if node.name in self.figures]
        self.started = list(self.world.pods)
        self.lost: Counter[object] = Counter()
        self.drained: Counter[str] = Counter()
        self.until: Percents | None = None
        self.charges: dict[str, Counter[str]] = {node.name: Counter() for node in self.nodes}
        self.measured = sorted(next(iter(self.figures.values()), ()))

    def evictions(self) -> list[tuple[str, str]]:
        self.low, self.high = self.bounds()
        self.goal = self.high
        self.under = [node for node in self.nodes if not node.unschedulable and self.is_under(node)]
        over = [node for node in self.nodes if self.excess(node) > 0]
        if len(self.under) > max(self.number_of_nodes, 0):
            for node in sorted(over, key=lambda node: (-self.excess(node), node.name)):
                self.cure(node)
            self.fill()
        return self.moves

    def fill(self) -> None:
        """Once no node is over, those above the mean give to the destinations that are still low."""
        if not self.deviation or self.usage is None or any(self.excess(node) > 0 for node in self.nodes):
            return
        self.goal = self.means()
        self.until = {name: self.low[name] + (self.goal[name] - self.low[name]) / 2 for name in self.low}
        givers = [node for node in self.nodes if self.excess(node) > 0]
        for node in sorted(givers, key=lambda node: (-self.excess(node), node.name)):
            self.cure(node)

    def is_low(self, node: Node) -> bool:
        """Always, until the filling begins."""
        if self.until is None:
            return True
        return any(self.percent(node, name, self.at_peak(node, name)) < self.until[name] for name in self.until)

    def means(self) -> Percents:
        return {
            name: sum(self.percent(node, name, self.started_with(node, name)) for node in self.nodes) / len(self.nodes)
            for name in self.thresholds
        }

    def started_with(self, node: Node, name: str) -> int:
        if name != "pods":
            return self.figures[node.name][name]
        return sum(1 for pod in self.started if pod.node == node.name and pod.active)

    # Thresholds, excess, destinations

    def bounds(self) -> tuple[Percents, Percents]:
        if not self.deviation or not self.nodes:
            return self.thresholds, self.targets
        means = self.means()
        low = {name: within(mean - self.thresholds[name]) for name, mean in means.items()}
        return low, {name: within(mean + self.targets[name]) for name, mean in means.items()}

    def figure(self, node: Node, name: str) -> int:
        return len(self.world.active(node)) if name == "pods" else self.figures[node.name][name]

    def percent(self, node: Node, name: str, amount: int) -> Fraction:
        return Fraction(amount * 100, node.allocatable[name])

    def is_under(self, node: Node) -> bool:
        return all(self.percent(node, name, self.at_peak(node, name)) <= self.low[name] for name in self.low)

    def at_peak(self, node: Node, name: str) -> int:
        """The peak, the pods that it cannot show, and what this plan has sent there (no pod, in `charges`)."""
        residents = [pod for pod in self.world.active(node) if pod.name[0] != "+"]
        if name == "pods":
            return len(residents) + self.charges[node.name][name]
        late = sum(self.takes(pod)[name] for pod in residents if self.is_late(pod))
        return self.peaks[node.name][name] + late + self.charges[node.name][name]

    def age(self, pod: Pod) -> timedelta:
        return self.now - (pod.started or pod.created)

    def is_young(self, pod: Pod) -> bool:
        return self.age(pod) < max(self.window, timedelta(minutes=5))

    def is_late(self, pod: Pod) -> bool:
        without_sample = self.usage is not None and pod.key not in self.usage
        return self.is_young(pod) and (bool(self.window) or without_sample)

    def takes(self, pod: Pod) -> Amounts:
        known = (self.usage or {}).get(pod.key)
        return known if known is not None else {name: pod.spec.requests.get(name, 0) for name in self.measured}

    def level(self, node: Node, name: str) -> int:
        """The lower of the figure, less what went in this plan, and what present pods use with what nobody does."""
        went = -self.charges[node.name][name]
        residents = [pod for pod in self.world.active(node) if pod.name[0] != "+"]
        staying = [pod for pod in residents if not pod.terminating]
        if name == "pods":
            return min(len(residents), len(staying))
        figure = self.figures[node.name][name]
        if self.usage is None:
            return figure
        there = [pod for pod in self.started if pod.node == node.name]
        seen = sum(self.usage[pod.key][name] for pod in there if pod.key in self.usage)
        rest = max(0, figure - seen - self.gone.get(node.name, {}).get(name, 0))
        present = sum(self.usage[pod.key][name] for pod in staying if pod.key in self.usage)
        return min(figure - went, rest + present)

    def points_over(self, node: Node) -> dict[str, Fraction]:
        over = {name: self.percent(node, name, self.level(node, name)) - self.goal[name] for name in self.goal}
        return {name: points for name, points in over.items() if points > 0}

    def excess(self, node: Node) -> Fraction:
        return sum(self.points_over(node).values(), Fraction(0))

    # One node

    def cure(self, node: Node) -> None:
        first = self.excess(node)
        candidates = [pod for pod in self.world.active(node) if self.is_candidate(pod)]
        for dearness in sorted({self.dearness(pod) for pod in candidates}):
            group = [pod for pod in candidates if self.dearness(pod) == dearness]
            while (pod := self.best(group, node, first)) is not None:
                group.remove(pod)
                if self.drained[node.name] == (1 if self.limit is None and self.usage is None else self.limit):
                    return
                self.drained[node.name] += self.move(pod, node)

    def is_candidate(self, pod: Pod) -> bool:
        if not self.world.passes_filter(pod) or (self.window and self.is_young(pod)):
            return False
        if self.is_newcomer(pod):
            return False
        return self.usage is None or (pod.key in self.usage and any(self.usage[pod.key].values()))

    def is_newcomer(self, pod: Pod) -> bool:
        siblings = [each for each in self.started if pod.controller and each.controller == pod.controller]
        later = [each for each in siblings if pod.created - each.created > timedelta(seconds=15)]
        return self.is_young(pod) and bool(later)

    def dearness(self, pod: Pod) -> tuple[object, ...]:
        priority = pod.spec.priority
        classes = ["BestEffort", "Burstable", "Guaranteed"]
        of_job = any(owner.kind == "Job" for owner in pod.owners)
        return (priority is not None, priority or 0, classes.index(pod.qos), pod.prefer_no_eviction, of_job)

    def best(self, group: list[Pod], node: Node, first: Fraction) -> Pod | None:
        over = self.points_over(node)
        by_age = sorted(group, key=lambda pod: (pod.created, pod.namespace, pod.name))
        if self.usage is None:
            return by_age[0] if by_age and over else None

        def taken(pod: Pod, name: str) -> Fraction:
            return self.percent(node, name, 1 if name == "pods" else self.takes(pod)[name])

        def left(pod: Pod) -> Fraction:
            return sum((max(Fraction(0), over[name] - taken(pod, name)) for name in over), Fraction(0))

        def beyond(pod: Pod) -> Fraction:
            return sum((taken(pod, name) for name in over), Fraction(0)) - sum(over.values())

        curing = [pod for pod in by_age if over and left(pod) == 0]
        if curing:
            return min(curing, key=beyond)
        taking = [pod for pod in by_age if over and sum(over.values()) - left(pod) >= first / 10]
        return min(taking, key=left, default=None)

    def move(self, pod: Pod, node: Node) -> bool:
        if not self.world.passes_pre_eviction_filter(pod):
            return False
        places = [each for each in self.under if self.is_low(each) and self.has_room(pod, each)]
        if not places or not self.may_be_lost(pod):
            return False
        place = min(places, key=lambda each: (-self.unrequested(each), each.name))
        self.lost[pod.namespace, pod.owners] += 1
        self.moves.append((str(pod), place.name))
        self.world.pods.remove(pod)
        self.world.pods.append(msgspec.structs.replace(pod, name=f"+{pod.name}", node=place.name))
        charge = Counter({**self.takes(pod), "pods": 1})
        self.charges[place.name].update(charge)
        if self.usage is not None:
            self.charges[node.name].subtract(charge)
        return True

    def has_room(self, pod: Pod, node: Node) -> bool:
        for name in {*self.high, *self.measured}:
            amount = self.at_peak(node, name) + (1 if name == "pods" else self.takes(pod)[name])
            if self.percent(node, name, amount) > self.high.get(name, Fraction(100)):
                return False
        return self.world.fits(pod, node)

    def unrequested(self, node: Node) -> Fraction:
        requested: Counter[str] = Counter()
        for pod in self.world.active(node):
            requested.update(pod.spec.requests)
        names = ("cpu", "memory")
        return sum((1 - Fraction(requested[name], node.allocatable[name]) for name in names), Fraction(0)) / 2

    def may_be_lost(self, pod: Pod) -> bool:
        """No PDBs here: an owner may lose a quarter of the pods it had, and one in any case."""
        own = [
            each
            for each in self.started
            if (each.namespace, each.owners) == (pod.namespace, pod.owners)
            and each.phase not in ("Succeeded", "Failed")
            and not each.terminating
        ]
        return not pod.owners or self.lost[pod.namespace, pod.owners] < max(1, len(own) // 4)


def within(percent: Fraction) -> Fraction:
    return min(max(percent, Fraction(0)), Fraction(100))
