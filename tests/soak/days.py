"""Fourteen days of thirty nodes, in cycles of thirty minutes: what happens to a cluster that nobody holds still.

Each owner has a daily peak of its own; some scale with it.  There are spikes, rollouts, nodes that fail and come back,
and an autoscaler that takes nodes away at night.  All of it is drawn from a seed, and is the same for whoever balances.
"""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from msgspec.structs import replace as changed

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.scheduler_inputs import SchedulerInputs, Template
from rebalancer.cluster.taints import Taint
from tests import make
from tests.outcome.load import Workload, make_load
from tests.outcome.simulation import Simulation

DAYS, CYCLE = 14, timedelta(minutes=30)
PODS = 900
_A_DAY = timedelta(days=1) / CYCLE
_NIGHT, _MORNING = 22, 6


@dataclass
class Habit:
    """How an owner's load goes through the day: by how much, when, and whether it scales."""

    swing: float
    peak: float
    scales: bool
    replicas: int


@dataclass
class Spike:
    """A load that is a few times as high for a few cycles."""

    owner: str
    factor: float
    left: int


@dataclass
class Days:
    """The cluster, and what happens to it."""

    seed: int
    now: datetime = make.NOW  # the time of the present cycle
    came: dict[str, datetime] = field(default_factory=dict)  # by node, when it came
    rolling: set[str] = field(default_factory=set)  # owners in a rollout
    scaled: dict[str, datetime] = field(default_factory=dict)  # by owner, when it was last scaled
    leaving: set[str] = field(default_factory=set)  # nodes that the autoscaler is about to take
    down: dict[str, datetime] = field(default_factory=dict)
    spikes: list[Spike] = field(default_factory=list)

    def __post_init__(self) -> None:
        load = make_load(self.seed, PODS)
        self.dice = random.Random(f"days {self.seed}")
        self.habits = {each.name: self._habit(each) for each in load}
        self.simulation = Simulation(load, random.Random(self.seed))  # pods, nodes and the scheduler
        self.names = tuple(self.simulation.names)
        self.came = dict.fromkeys(self.names, self.now - timedelta(days=30))
        self.simulation.fill(self.names)

    def _habit(self, workload: Workload) -> Habit:
        scales = workload.replicas >= 4 and self.dice.random() < 0.3
        return Habit(self.dice.uniform(0.0, 0.6), self.dice.uniform(0, 24), scales, workload.replicas)

    def cycles(self, days: float = DAYS) -> Iterator[datetime]:
        """Yield the time of each cycle, with the cluster as it is then."""
        for _ in range(round(days * _A_DAY)):
            self._happen()
            yield self.now
            self.now += CYCLE
            self.simulation.clock += CYCLE.total_seconds()

    def _happen(self) -> None:
        """Let half an hour pass.  What is drawn does not hang on where pods are."""
        dice, self.rolling = random.Random(f"{self.seed} {self.now}"), set()
        owners = [each.name for each in self.simulation.load]
        for spike in self.spikes:
            spike.left -= 1
        self.spikes = [each for each in self.spikes if each.left > 0]
        if dice.random() < 0.3:
            self.spikes.append(Spike(dice.choice(owners), dice.uniform(1.5, 3.0), dice.randint(1, 3)))
        self._use(dice)
        self._scale()
        if dice.random() < 6 / _A_DAY:
            self._roll_out(dice.choice(owners))
        self._come_back()
        if dice.random() < 2 / 7 / _A_DAY:
            self._lose(dice.choice(self.names), hours=dice.randint(2, 4))
        self._autoscale()

    def _use(self, dice: random.Random) -> None:
        hour = self.now.hour + self.now.minute / 60
        self.simulation.factors = {
            name: (1 + habit.swing * math.cos((hour - habit.peak) * math.pi / 12))
            * math.prod(each.factor for each in self.spikes if each.owner == name)
            * dice.uniform(0.95, 1.05)
            for name, habit in self.habits.items()
        }

    def _scale(self) -> None:
        """Let owners that scale have a quarter more pods at their peak, and a quarter fewer at night."""
        hour = self.now.hour + self.now.minute / 60
        for workload in self.simulation.load:
            habit = self.habits[workload.name]
            level = round(math.cos((hour - habit.peak) * math.pi / 12))
            wanted = habit.replicas + level * max(1, habit.replicas // 4) if habit.scales else habit.replicas
            pods = sorted(each.name for each in self.simulation.pods.values() if each.workload.name == workload.name)
            if len(pods) != wanted:
                self.scaled[workload.name] = self.now
            for name in pods[wanted:]:
                del self.simulation.pods[name]
            for _ in range(wanted - len(pods)):
                self.simulation.create(workload, self.open_nodes())

    def _roll_out(self, owner: str) -> None:
        self.rolling.add(owner)
        self._replace([each.name for each in self.simulation.pods.values() if each.workload.name == owner])

    def _replace(self, names: list[str]) -> None:
        for name in names:
            gone = self.simulation.pods.pop(name)
            self.simulation.create(gone.workload, self.open_nodes())

    def open_nodes(self) -> list[str]:
        return [name for name in self.simulation.names if name not in self.leaving]

    def _lose(self, node: str, hours: float) -> None:
        if node in self.down:
            return
        self.down[node] = self.now + timedelta(hours=hours)
        self.simulation.names = tuple(name for name in self.names if name not in self.down)
        self._replace([each.name for each in self.simulation.pods.values() if each.node == node])

    def _come_back(self) -> None:
        for node in [name for name, until in self.down.items() if until <= self.now]:
            del self.down[node]
            self.came[node] = self.now
        self.simulation.names = tuple(name for name in self.names if name not in self.down)

    def _autoscale(self) -> None:
        """At night the last two nodes are drained and go; in the morning they come back empty."""
        for node in sorted(self.leaving):
            self._lose(node, hours=_MORNING + 24 - _NIGHT)
        self.leaving = set()
        if (self.now.hour, self.now.minute) == (_NIGHT, 0):
            self.leaving = {name for name in self.names[-2:] if name not in self.down}

    def cluster(self) -> Cluster:
        """Return the cluster as the cycle's program sees it."""
        seen = self.simulation.cluster()
        snapshot = seen.snapshot
        pods = tuple(self._pod(pod) for pod in snapshot.pods)
        scheduler_inputs = SchedulerInputs(
            templates={
                (owner.kind, owner.uid): Template(labels=pod.labels, spec=pod.spec, changing=owner.name in self.rolling)
                for pod in pods
                if (owner := pod.controller) and owner.kind == "ReplicaSet"
            },
            scaled={("default", f"ReplicaSet/{name}"): time for name, time in self.scaled.items()},
        )
        nodes = tuple(map(self._node, snapshot.nodes))
        return Cluster(
            changed(snapshot, now=self.now, nodes=nodes, pods=pods, scheduler_inputs=scheduler_inputs),
            measure=lambda *_: seen.measure(None),
        )

    def _pod(self, pod: Pod) -> Pod:
        created = self.now - (make.NOW - pod.created)
        return changed(pod, created=created, started=created)

    def _node(self, node: Node) -> Node:
        taints = (Taint("ToBeDeletedByClusterAutoscaler", "", "NoSchedule"),) if node.name in self.leaving else ()
        return changed(node, created=self.came[node.name], taints=taints)
