"""Does it earn trust over two weeks?  Hours over target, evictions, and moves that were undone, beside others.

    make soak                                  # three policies and five seeds: half an hour or so
    make soak OPTIONS='--seeds 7 --policy band'

Three play the same days (`Days`): the program with its memory, the descheduler's rules on the same figures,
and nobody.  All have the same limits, PDBs and scheduler.  A move is undone if the pod comes back to its node, or if
its replacement is moved within a day.  Exit code 1 means that a requirement fails (`REQUIREMENTS`).
"""

import argparse
import math
import random
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from msgspec.structs import replace

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.scheduler_inputs import SchedulerInputs, Template
from rebalancer.cluster.taints import Taint
from rebalancer.engine.limits import Limits
from rebalancer.memory.document import KEY, Memory, decoded, encoded
from rebalancer.memory.settling import with_moves
from rebalancer.policy.moving import Trust
from rebalancer.run.memory import Recalled, past_move, readings, recollect
from strategies.low_node_utilization import LowNodeUtilization, LowNodeUtilizationArgs
from tests import make
from tests.outcome.load import Workload, make_load
from tests.outcome.scenarios import Bounds
from tests.outcome.simulation import PlayedSteer, Replaced, Simulation
from tests.outcome.state import over

DAYS, CYCLE = 14, timedelta(minutes=30)
PODS = 900
_A_DAY = timedelta(days=1) / CYCLE
_NIGHT, _MORNING = 22, 6


class Habit(NamedTuple):
    """How an owner's load goes through the day: by how much, when, and whether it scales."""

    swing: float
    peak: float
    scales: bool
    replicas: int


class Spike(NamedTuple):
    """A load that is a few times as high until a time."""

    owner: str
    factor: float
    until: datetime


@dataclass
class Days:
    """The cluster, and what happens to it: thirty nodes on which the load keeps changing.

    Each owner has a daily peak of its own; some scale with it.  There are spikes, rollouts, nodes that fail and come
    back, and an autoscaler that takes nodes away at night.  All of it is drawn from a seed.
    """

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
        self.spikes = [each for each in self.spikes if each.until > self.now]
        if dice.random() < 0.3:
            spike = Spike(dice.choice(owners), dice.uniform(1.5, 3.0), self.now + dice.randint(1, 3) * CYCLE)
            self.spikes.append(spike)
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
            replace(snapshot, now=self.now, nodes=nodes, pods=pods, scheduler_inputs=scheduler_inputs),
            measure=lambda *_: seen.measure(None),
        )

    def _pod(self, pod: Pod) -> Pod:
        created = self.now - (make.NOW - pod.created)
        return replace(pod, created=created, started=created)

    def _node(self, node: Node) -> Node:
        taints = (Taint("ToBeDeletedByClusterAutoscaler", "", "NoSchedule"),) if node.name in self.leaving else ()
        return replace(node, created=self.came[node.name], taints=taints)


LIMITS = Limits(per_node=5, total=20)
#: Points of a node that a steered move brings at least, as the default of `steering.minGain`.
MIN_GAIN = 1.5
RELIEF = {"source": "KubernetesMetrics", "selection": "relief"}
TARGETS = {"thresholds": {"cpu": 45, "memory": 60}, "targetThresholds": {"cpu": 60, "memory": 75}}
BAND = {
    "useDeviationThresholds": True,
    "thresholds": {"cpu": 10, "memory": 10},
    "targetThresholds": {"cpu": 10, "memory": 10},
}
POLICIES: dict[str, dict[str, Any]] = {
    "targets": TARGETS,
    "band": BAND,
    "lasting": BAND | {"trust": {"lasting": {}}},
}
WHO = ("rebalancer", "descheduler", "nobody")
#: At most so many times the descheduler's hours and evictions, and at most this share of moves undone.
REQUIREMENTS = {"hours": 0.5, "evictions": 0.25, "undone": 0.01}


@dataclass(frozen=True)
class Soaked:
    hours: float  # nodes x hours over target
    evictions: int = 0  # by the program
    undone: int = 0  # evictions that were for nothing

    @property
    def share_undone(self) -> float:
        return self.undone / self.evictions if self.evictions else 0.0


class Tally:
    """Counts evictions, and those that were for nothing."""

    def __init__(self) -> None:
        self.evictions = self.undone = 0
        self._came: dict[str, datetime] = {}

    def count(self, now: datetime, replaced: Iterable[Replaced]) -> None:
        for each in replaced:
            before = self._came.pop(each.gone.name, None)
            self.evictions += 1
            again = before is not None and now - before < timedelta(days=1)
            self.undone += each.came.node == each.gone.node or again
            self._came[each.came.name] = now


def soak(policy: str, who: str, seed: int, days: float = DAYS) -> Soaked:
    args = dict(POLICIES[policy])
    trust = Trust.model_validate(args.pop("trust", {}))
    bounds = Bounds(args["thresholds"], args["targetThresholds"], args.get("useDeviationThresholds", False))
    usage = RELIEF if who == "rebalancer" else {"source": RELIEF["source"]}
    strategy = LowNodeUtilization(LowNodeUtilizationArgs.model_validate(args | {"metricsUtilization": usage}))
    cluster_of, memory, hours, tally = Days(seed), Memory(since=make.NOW - timedelta(days=30)), 0.0, Tally()
    for now in cluster_of.cycles(days):
        hours += len(over(cluster_of.simulation.shares(), bounds)) * (CYCLE / timedelta(hours=1))
        if who == "nobody":
            continue
        cluster, known = cluster_of.cluster(), None
        if who == "rebalancer":
            known = recollect(Recalled(decoded({KEY: encoded(memory)}, now)), trust, cluster.snapshot)
        steer = PlayedSteer(cluster_of.simulation, MIN_GAIN) if known else None
        parts = {"evictor": {"nodeFit": True}, "limits": LIMITS, "recollection": known}
        ledger, replaced = cluster_of.simulation.cycle(cluster, strategy, cluster_of.open_nodes(), steer, **parts)
        tally.count(now, replaced)
        if known:
            memory = with_moves(known.memory, [past_move(entry, now, now) for entry in ledger.evictions])
            memory = replace(memory, readings=(*memory.readings, *readings(ledger, now))[-12:])
    return Soaked(hours, tally.evictions, tally.undone)


def main() -> int:
    asked = _asked()
    tasks = [(policy, who, seed) for policy in asked.policy for seed in asked.seeds for who in WHO]
    with ProcessPoolExecutor() as pool:
        found = dict(zip(tasks, pool.map(soak, *zip(*tasks, strict=True)), strict=True))
    _print(f"{DAYS} days, {PODS} pods, seeds {', '.join(map(str, asked.seeds))}; medians\n")
    _print("| policy | who | node hours over target | evictions a pod and day | undone |")
    _print("|---|---|---|---|---|")
    failed = []
    for policy in asked.policy:
        by = {who: [found[policy, who, seed] for seed in asked.seeds] for who in WHO}
        for who, runs in by.items():
            _print(f"| {policy} | {who} | {' | '.join(_shown(runs))} |")
        failed += [f"{policy}: {problem}" for problem in problems(by["rebalancer"], by["descheduler"])]
    _print("\n" + ("\n".join(failed) or "All requirements are met."))
    return 1 if failed else 0


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _shown(runs: Sequence[Soaked]) -> tuple[str, str, str]:
    return (
        f"{statistics.median(each.hours for each in runs):.0f}",
        f"{statistics.median(each.evictions / PODS / DAYS for each in runs):.3f}",
        f"{statistics.median(each.share_undone for each in runs):.1%}",
    )


def problems(ours: Sequence[Soaked], theirs: Sequence[Soaked]) -> Iterator[str]:
    def median(runs: Sequence[Soaked], name: str) -> float:
        return statistics.median(getattr(each, name) for each in runs)

    for name in ("hours", "evictions"):
        found, most = median(ours, name), REQUIREMENTS[name] * median(theirs, name)
        if found > most:
            yield f"{name} are {found:.0f}, more than {most:.0f}"
    if (undone := median(ours, "share_undone")) > REQUIREMENTS["undone"]:
        yield f"{undone:.1%} of the moves were undone"


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[11, 12, 13, 14, 15])
    parser.add_argument("--policy", nargs="+", choices=list(POLICIES), default=list(POLICIES))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
