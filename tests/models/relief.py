"""Selection by relief as its rules are told, one after the other, in exact fractions: slow and obvious on purpose."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from math import ceil

import msgspec

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.selectors import LabelSelector
from rebalancer.scheduling.worlds import Worlds
from tests.models.filling import Filling
from tests.models.kube_scheduler import Kube
from tests.models.placement import World, age, importance

Amounts = Mapping[str, int]
Percents = Mapping[str, Fraction]


@dataclass
class LowRelief:
    """LowNodeUtilization by measured usage."""

    world: World
    now: datetime
    figures: Mapping[str, Amounts]  # by node, what was measured; a node that is missing has no fresh figure
    peaks: Mapping[str, Amounts]  # the same at the destination quantile
    usage: Mapping[tuple[str, str], Amounts] | None  # by pod, on the node where it is; None if the source knows none
    gone: Mapping[str, Amounts]  # by node, what pods used that are there no longer, as far as the source knows
    window: timedelta
    thresholds: Percents
    targets: Percents
    deviation: bool = False
    number_of_nodes: int = 0
    limit: int | None = None
    scheduler_known: bool = True
    services: list[tuple[str, LabelSelector]] = field(default_factory=list)
    moves: list[tuple[str, str]] = field(default_factory=list)  # pods that went, with the node that is charged
    cluster: Cluster | None = None  # to ask where replacements land after ties, which has models of its own

    def __post_init__(self) -> None:
        self.nodes = [node for node in self.world.nodes if node.name in self.figures]
        self.started = list(self.world.pods)
        self.left: list[Pod] = []
        self.lost: Counter[object] = Counter()
        self.firsts: dict[str, Fraction] = {}
        self.drained: Counter[str] = Counter()
        self.charges: dict[str, Counter[str]] = {node.name: Counter() for node in self.nodes}
        self.arrived: dict[str, Counter[str]] = {node.name: Counter() for node in self.nodes}
        self.worlds = self.cluster and self.cluster.index(Worlds)
        self.measured = sorted(next(iter(self.figures.values()), ()))

    def evictions(self) -> list[tuple[str, str]]:
        if not self.nodes:  # none was measured
            return []
        self.low, self.high = self.bounds()
        self.goal = self.ceilings = self.high
        self.mean = self.means()
        if self.deviation:
            self.ceilings = self.above_mean(Fraction(1, 2))
        self.under = [node for node in self.nodes if not node.unschedulable and self.is_under(node)]
        idle = [node for node in self.nodes if not node.unschedulable and self.is_idle(node)]
        if not self.under or (self.number_of_nodes > 0 and len(idle) <= self.number_of_nodes):
            return self.moves
        self.relieve_all()
        if self.deviation and self.over():
            self.ceilings = self.above_mean(Fraction(9, 10))
            self.relieve_all()
        if self.deviation and self.usage is not None:
            Filling(self).run()
        return self.moves

    def over(self) -> list[Node]:
        over = [node for node in self.nodes if self.excess(node) > 0]
        return sorted(over, key=lambda node: (-self.excess(node), node.name))

    def relieve_all(self) -> None:
        for node in self.over():
            self.relieve(node)

    # Levels

    def lack(self, node: Node, floors: Percents, amounts: Amounts) -> Fraction:
        lacks = (floors[name] - self.percent(node, name, amounts[name]) for name in floors)
        return sum((lack for lack in lacks if lack > 0), Fraction(0))

    def low_nodes(self, floors: Percents) -> list[Node]:
        peaks = [node for node in self.nodes if not node.unschedulable]
        return [
            node for node in peaks if self.lack(node, floors, {name: self.at_peak(node, name) for name in floors}) > 0
        ]

    def of_pod(self, pod: Pod, name: str) -> int:
        return 1 if name == "pods" else self.takes(pod)[name]

    def above_mean(self, share: Fraction) -> Percents:
        return {name: self.mean[name] + share * (self.high[name] - self.mean[name]) for name in self.high}

    def above_low(self, share: Fraction) -> Percents:
        return {name: self.low[name] + share * (self.mean[name] - self.low[name]) for name in self.low}

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
        """In a band: below the mean of some resource."""
        if not self.deviation:
            return self.is_idle(node)
        return any(self.percent(node, name, self.at_peak(node, name)) < self.mean[name] for name in self.mean)

    def is_idle(self, node: Node) -> bool:
        return all(self.percent(node, name, self.at_peak(node, name)) <= self.low[name] for name in self.low)

    def at_peak(self, node: Node, name: str) -> int:
        """The peak, the pods that it cannot show, and what this plan has sent there; what it lost is not taken off."""
        residents = [pod for pod in self.started if pod.node == node.name and pod.active]
        if name == "pods":
            return len(residents) + self.arrived[node.name][name]
        late = sum(self.takes(pod)[name] for pod in residents if self.is_late(pod))
        return self.peaks[node.name][name] + late + self.arrived[node.name][name]

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
        """The lower of the figure less what went, and what present pods use plus what no pod accounts for."""
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

    def relieve(self, node: Node) -> None:
        beside_pods = {name: points for name, points in self.points_over(node).items() if name != "pods"}
        first = self.firsts.setdefault(node.name, sum(beside_pods.values(), Fraction(0)))
        candidates = [pod for pod in self.world.active(node) if self.is_candidate(pod)]
        for cost in sorted({self.cost(pod) for pod in candidates}):
            group = [pod for pod in candidates if self.cost(pod) == cost]
            while (pod := self.best(group, node, first)) is not None:
                group.remove(pod)
                if self.drained[node.name] == (1 if self.limit is None and self.usage is None else self.limit):
                    return
                destinations = self.destinations(pod)
                if destinations and (destination := self.in_all_worlds(pod, destinations)):
                    self.drained[node.name] += self.move(pod, destination)

    def is_candidate(self, pod: Pod) -> bool:
        if not self.world.passes_filter(pod) or (self.window and self.is_young(pod)):
            return False
        if self.is_newcomer(pod):
            return False
        if self.usage is None:
            return True
        return pod.key in self.usage and ("pods" in self.thresholds or any(self.usage[pod.key].values()))

    def is_newcomer(self, pod: Pod) -> bool:
        """Came after the first of its owner's; or the first are so few that one cycle may have moved them."""
        if not pod.controller or self.age(pod) >= timedelta(minutes=20):
            return False
        created = [each.created for each in self.started if each.controller == pod.controller]
        first = [each for each in created if each - min(created) <= timedelta(seconds=15)]
        return pod.created not in first or len(first) <= ceil(Fraction(len(created), 4))

    def cost(self, pod: Pod) -> tuple[object, ...]:
        return *importance(pod), any(owner.kind == "Job" for owner in pod.owners)

    def best(self, group: list[Pod], node: Node, first: Fraction) -> Pod | None:
        over = self.points_over(node)
        by_age = sorted(group, key=age)
        if self.usage is None:
            return by_age[0] if by_age and over else None

        def taken(pod: Pod, name: str) -> Fraction:
            return self.percent(node, name, 1 if name == "pods" else self.takes(pod)[name])

        def left(pod: Pod) -> Fraction:
            return sum((max(Fraction(0), over[name] - taken(pod, name)) for name in over), Fraction(0))

        def beyond(pod: Pod) -> Fraction:
            return sum((taken(pod, name) for name in over), Fraction(0)) - sum(over.values())

        enough = [pod for pod in by_age if over and left(pod) == 0]
        if enough:
            return min(enough, key=beyond)
        least = 0 if "pods" in over else first / 10  # of the number of pods each takes the same
        taking = [pod for pod in by_age if over and sum(over.values()) - left(pod) >= least]
        return min(taking, key=left, default=None)

    def move(self, pod: Pod, destination: Node) -> bool:
        if not self.may_be_lost(pod):
            return False
        node = self.world.node(pod)
        self.lost[pod.namespace, pod.owners] += 1
        if self.cluster is not None:
            self.cluster.evicted(pod)
            self.cluster.place(pod, destination)
        self.moves.append((str(pod), destination.name))
        self.world.pods.remove(pod)
        self.left.append(pod)
        self.world.pods.append(msgspec.structs.replace(pod, name=f"+{pod.name}", node=destination.name))
        charge = Counter({**self.takes(pod), "pods": 1})
        self.charges[destination.name].update(charge)
        self.arrived[destination.name].update(charge)
        if self.usage is not None:
            self.charges[node.name].subtract(charge)
        return True

    # Where it goes

    def destinations(self, pod: Pod) -> list[Node]:
        """Where the pod would land, as far as is known; nowhere if that does harm."""
        if not self.world.passes_pre_eviction_filter(pod):
            return []
        allowed = [each for each in self.under if each.name != pod.node and self.has_room(pod, each)]
        if not allowed or not self.scheduler_known:
            return sorted(allowed, key=lambda each: (-self.unrequested(each), each.name))[:1]
        expected = likely(self.world, pod, self.left, self.services)
        harmless = all(
            node.name != pod.node and not node.unschedulable and node in self.nodes and self.does_no_harm(pod, node)
            for node in expected
        )
        return expected if harmless else []

    def in_all_worlds(self, pod: Pod, expected: list[Node], wanted: Node | None = None) -> Node | None:
        """Where the pod is expected to land; nowhere if it does harm in some possible history."""
        if self.worlds is None or not self.scheduler_known or not self.may_be_lost(pod):
            return wanted or expected[0]
        for seen in self.worlds.placements(pod):
            nodes = [node for node in self.world.nodes if node.name in seen.answer.nodes]
            if not nodes or any(self.does_harm_in(seen.number, pod, node) for node in nodes):
                return None
        often = [node for name in self.worlds.shares(pod) for node in self.world.nodes if node.name == name]
        return wanted or next((node for node in often if self.does_no_harm(pod, node)), often[0])

    def does_harm_in(self, number: int, pod: Pod, node: Node) -> bool:
        if self.worlds is None or node.name == pod.node or node.unschedulable or node not in self.nodes:
            return True
        more, fewer = self.worlds.others_on(number, node.name)
        by_plan, there = self.arrived[node.name], Counter(self.arrived[node.name])
        for each in more:
            there.update({**self.takes(each), "pods": 1})
        for each in fewer:
            there.subtract({**self.takes(each), "pods": 1})
        self.arrived[node.name] = there
        harmless = self.does_no_harm(pod, node)
        self.arrived[node.name] = by_plan
        return not harmless

    def does_no_harm(self, pod: Pod, node: Node) -> bool:
        """In a band a pod may also fill a node more, where that is short of something, than it lifts it too high."""
        return self.is_within(pod, node, self.ceilings) or (
            self.deviation and self.is_within(pod, node, {}) and self.outside(node, 1, pod) < self.outside(node, 0, pod)
        )

    def outside(self, node: Node, count: int, pod: Pod) -> Fraction:
        amounts = {name: self.at_peak(node, name) + count * self.of_pod(pod, name) for name in self.low}
        above = (self.percent(node, name, amounts[name]) - self.ceilings[name] for name in self.low)
        return self.lack(node, self.low, amounts) + sum((points for points in above if points > 0), Fraction(0))

    def has_room(self, pod: Pod, node: Node) -> bool:
        return self.is_within(pod, node, self.ceilings) and self.world.fits(pod, node)

    def is_within(self, pod: Pod, node: Node, ceilings: Percents) -> bool:
        for name in {*self.high, *self.measured}:
            amount = self.at_peak(node, name) + (1 if name == "pods" else self.takes(pod)[name])
            if self.percent(node, name, amount) > ceilings.get(name, Fraction(100)):
                return False
        return True

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


def likely(
    world: World, pod: Pod, gone: list[Pod], services: list[tuple[str, LabelSelector]], kind: type[Kube] = Kube
) -> list[Node]:
    """The nodes that may win while pods that went still end, or when they are gone; none if there may be none."""
    others = [each for node in world.nodes for each in world.active(node) if each is not pod]
    ending = [msgspec.structs.replace(each, terminating=True) for each in gone]
    own = msgspec.structs.replace(pod, terminating=True)
    states = [[*others, own], [*others, own, *ending]]
    if any(owner.controller and owner.kind == "Job" for owner in pod.owners):  # it may wait for the end
        states += [others, [*others, *ending]]
    found = [kind(world.nodes, pods, services=services).winners(pod) for pods in states]
    return [node for node in world.nodes if node.name in set.union(*found)] if all(found) else []
