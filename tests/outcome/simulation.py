"""The outcome's cycles with a scheduler of a few lines instead of a real one: a second each, the same every time.

The scheduler scores as kube-scheduler does by default, and takes one of the best by a seed's chance.  What pods use is
known exactly, a PDB lets a quarter of an owner's pods go, and replacements run at once, while all pods that were
evicted in the cycle still end: their requests count, and spreading does not count them.
"""

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import Measured
from rebalancer.cluster.pod import Pod, PreferredTerm, SpreadConstraint
from rebalancer.cluster.scheduler_inputs import Claim, SchedulerInputs, Volume
from rebalancer.cluster.selectors import NodeSelectorTerm, Requirement
from rebalancer.cluster.snapshot import DisruptionBudget
from rebalancer.engine.ledger import Ledger
from rebalancer.eviction.steering import ActualPlacement, Move, Steer, Wave
from rebalancer.eviction.verdict import Verdict
from rebalancer.scheduling.simulator.sampling import nodes_to_score
from strategies.low_node_utilization import LowNodeUtilization, LowNodeUtilizationArgs
from tests import make
from tests.measured import KEYS
from tests.outcome import zones
from tests.outcome.load import NODE_CPU, NODE_MEMORY, NODES, Workload, make_load, varied
from tests.outcome.result import Cycle, Result, result_of
from tests.outcome.scenarios import Bounds, Scenario, bounds_of, configured
from tests.outcome.state import Moved, Shares, State
from tests.outcome.zones import NO_WISH, ZONE, Wish, make_wishes, zone_of

MEBIBYTE = 1 << 20
NAMES = [f"node-{number:02}" for number in range(NODES)]
_SCORED_AT_MOST = 100  # of more nodes the scheduler scores a part
AGENT = {"cpu": 160, "memory": 640 * MEBIBYTE}  # what a node uses beside its pods
AGENT_REQUESTS = (100, 200)  # what the scheduler assumes of it
OLD = 3600.0  # seconds that all pods have run at the start


@dataclass(frozen=True)
class Running:
    """A pod: its name, workload and node, and when it was created, in seconds."""

    name: str
    workload: Workload
    node: str
    born: float


class Replaced(NamedTuple):
    """A pod that was evicted, and the one that came for it: on a node that was named for it, or not."""

    gone: Running
    came: Running
    foreseen: bool


@dataclass
class Simulation:
    """A cluster and its scheduler."""

    load: Sequence[Workload]
    dice: random.Random
    clock: float = 0.0
    pods: dict[str, Running] = field(default_factory=dict)
    created: int = 0
    ending: set[str] = field(default_factory=set)
    avoid: Mapping[str, int] = field(default_factory=dict)  # by node, how many soft taints it carries
    # By workload, how many times its usual usage it uses; 1 for others.
    factors: Mapping[str, float] = field(default_factory=dict)
    # By workload, what its pods wish of zones; empty where there are no zones.
    wishes: Mapping[str, Wish] = field(default_factory=dict)
    names: Sequence[str] = tuple(NAMES)  # of the nodes, in the order in which the scheduler keeps them
    start: int = 0  # where in the list of nodes the scheduler looks first, if it scores only a part

    def create(self, workload: Workload, nodes: Sequence[str]) -> Running:
        """Let the scheduler place a new pod on one of these nodes."""
        pod = Running(f"{workload.name}-{self.created}", workload, self._choose(workload, nodes), self.clock)
        self.created += 1
        self.pods[pod.name] = pod
        return pod

    def fill(self, nodes: Sequence[str]) -> None:
        """Let the scheduler place all pods; then they have run for long."""
        for workload in self.load:
            for _ in range(workload.replicas):
                self.create(workload, nodes)
        self.clock = OLD

    def cycle(
        self, on: Cluster, strategy: Any, nodes: Sequence[str], steer: "PlayedSteer | None" = None, **parts: Any
    ) -> tuple[Ledger, list[Replaced]]:
        """Let a strategy decide once, and the replacements of what went without being steered come on these nodes."""
        before = dict(self.pods)
        ledger = make.decide(on, strategy, steer=steer, **parts)
        assert not ledger.stopped
        assert not any(run.error for run in ledger.runs), ledger.runs
        if steer:
            return ledger, [
                Replaced(before[each.move.pod.name], self.pods[each.replacement], each.foreseen)
                for each in steer.placements
            ]
        found = []
        for entry in ledger.evictions:
            gone = before[entry.pod.name]
            self.ending.add(gone.name)
            came, foretold = self.create(gone.workload, nodes), entry.destination
            found.append(Replaced(gone, came, foretold is not None and came.node in foretold.nodes))
        for name in self.ending:
            del self.pods[name]
        self.ending.clear()
        return ledger, found

    def shares(self) -> Shares:
        offered = {"cpu": NODE_CPU, "memory": NODE_MEMORY * MEBIBYTE}
        return {
            node: {name: 100 * amount / offered[name] for name, amount in amounts.items()}
            for node, amounts in self._usage().items()
        }

    def cluster(self) -> Cluster:
        pods = {pod.name: self._pod(pod) for pod in self.pods.values()}
        usage = {each.key: self._uses(self.pods[name].workload) for name, each in pods.items()}
        nodes = self._usage()
        size = {"cpu": f"{NODE_CPU}m", "memory": f"{NODE_MEMORY}Mi"}
        built = [make.node(name, **size, labels={ZONE: zone_of(name)} if self.wishes else None) for name in self.names]
        agents = [make.pod(f"agent-{name}", node=name, cpu=None, owners=_AGENT_OWNER, age=OLD) for name in self.names]
        usage |= {agent.key: AGENT for agent in agents}
        snapshot = make.snapshot(built, [*pods.values(), *agents], budgets=tuple(self._budgets()), **self._volumes())
        return Cluster(snapshot, measure=lambda *_: Measured(nodes=nodes, peaks=nodes, pods=usage))

    def state(self) -> State:
        return State(self.shares(), {pod.name: pod.node for pod in self.pods.values()})

    def played(
        self,
        strategy: Any,
        evictor: Mapping[str, Any],
        bounds: Bounds,
        cycles: int,
        interval: float,
        min_gain: float | None = None,
        vary: Callable[[int], None] = lambda _: None,
    ) -> Result:
        """Let a strategy decide in so many cycles, and return what they came to (for the arguments see `play`)."""
        done: list[Cycle] = []
        steers: list[PlayedSteer] = []
        seconds = 0.0
        for number in range(cycles):
            vary(number)
            steer = None if min_gain is None else PlayedSteer(self, min_gain)
            start, cluster, begun = self.state(), self.cluster(), time.process_time()
            _, found = self.cycle(cluster, strategy, self.names, steer, evictor=evictor)
            seconds += time.process_time() - begun
            end, gone = self.state(), frozenset(each.gone.name for each in found)
            moved = Moved(frozenset(start.places), gone, frozenset(end.places))
            done.append(Cycle(start, end, moved, foreseen=(sum(each.foreseen for each in found), len(found))))
            steers += [steer] if steer else []
            self.clock += interval
        return result_of(done, bounds, self.load, steers=steers, seconds=seconds)

    def _pod(self, pod: Running) -> Pod:
        workload = pod.workload
        return make.pod(
            pod.name,
            node=pod.node,
            cpu=f"{workload.cpu}m",
            memory=f"{workload.memory}Mi",
            owners=workload.name,
            age=self.clock - pod.born,
            labels={"app": workload.name},
            **_wishing(workload.name, self.wishes.get(workload.name, NO_WISH)),
        )

    def _volumes(self) -> dict[str, SchedulerInputs]:
        tied = {name: wish.volume for name, wish in self.wishes.items() if wish.volume}
        claims = {("default", name): Claim(namespace="default", name=name, volume=name, bound=True) for name in tied}
        volumes = {name: Volume(name=name, node_terms=(_in_zone(zone),)) for name, zone in tied.items()}
        read = SchedulerInputs(claims=claims, volumes=volumes, storage_classes={}, csi_nodes={}, csi_drivers={})
        return {"scheduler_inputs": read} if tied else {}

    def _budgets(self) -> list[DisruptionBudget]:
        return [make.pdb(each.name, math.ceil(each.replicas / 4)) for each in self.load if each.guarded]

    def _usage(self) -> dict[str, dict[str, int]]:
        usage = {name: dict(AGENT) for name in self.names}
        for pod in self.pods.values():
            for name, amount in self._uses(pod.workload).items():
                usage[pod.node][name] += amount
        return usage

    def _uses(self, workload: Workload) -> dict[str, int]:
        return _uses(workload.times(self.factors.get(workload.name, 1.0)))

    def _choose(self, workload: Workload, nodes: Sequence[str]) -> str:
        wish, siblings = self.wishes.get(workload.name, NO_WISH), self._siblings(workload)
        nodes = zones.allowed(nodes, wish, siblings) if self.wishes else nodes
        nodes = self._scored(nodes)
        asked = {name: [0, 0] for name in nodes}
        for pod in self.pods.values():
            if sums := asked.get(pod.node):
                sums[0] += pod.workload.cpu
                sums[1] += pod.workload.memory
        spread = zones.spreading(nodes, wish, siblings, zoned=bool(self.wishes))
        scores = {
            name: _score(*asked[name], workload)
            + spread[name]
            + zones.preference(name, wish)
            + 3 * (100 - 100 * self.avoid.get(name, 0) // max(*self.avoid.values(), 1, 1))
            for name in nodes
        }
        most = max(scores.values())
        best = [name for name in nodes if scores[name] == most]
        return self.dice.choice(best)

    def _scored(self, nodes: Sequence[str]) -> Sequence[str]:
        """Return those of the nodes that are scored; the next pod begins after them."""
        if len(self.names) < _SCORED_AT_MOST:
            return nodes
        enough, allowed = nodes_to_score(0, len(self.names)), frozenset(nodes)
        round_trip = (*self.names[self.start :], *self.names[: self.start])
        looked_at = [(step, name) for step, name in enumerate(round_trip, 1) if name in allowed][:enough]
        self.start = (self.start + looked_at[-1][0]) % len(self.names)
        return [name for _, name in looked_at]

    def _siblings(self, workload: Workload) -> Counter[str]:
        counts = Counter(pod.node for pod in self.pods.values() if pod.workload is workload)
        counts.subtract(self.pods[name].node for name in self.ending if self.pods[name].workload is workload)
        return counts


_AGENT_OWNER = [make.owner("agent", kind="DaemonSet")]


def _in_zone(zone: str) -> NodeSelectorTerm:
    return NodeSelectorTerm((Requirement(ZONE, "In", (zone,)),))


def _wishing(name: str, wish: Wish) -> dict[str, Any]:
    selector = make.selector(app=name)
    return {
        "spread": (SpreadConstraint(1, ZONE, wish.spread, selector),) if wish.spread else (),
        "preferred": (PreferredTerm(100, _in_zone(wish.prefers)),) if wish.prefers else (),
        "node_affinity": bool(wish.prefers),
        "claims": (name,) if wish.volume else (),
    }


def _uses(workload: Workload) -> dict[str, int]:
    return {"cpu": workload.uses_cpu, "memory": workload.uses_memory * MEBIBYTE}


def _score(cpu_before: int, memory_before: int, workload: Workload) -> int:
    """Return LeastAllocated and BalancedAllocation together, as since Kubernetes 1.36, by what is requested there."""
    cpu, memory = cpu_before + workload.cpu, memory_before + workload.memory
    free_cpu, free_memory = NODE_CPU - cpu - AGENT_REQUESTS[0], NODE_MEMORY - memory - AGENT_REQUESTS[1]
    least = (free_cpu * 100 // NODE_CPU + free_memory * 100 // NODE_MEMORY) // 2
    return least + 50 + (50 + _balance(cpu, memory) - _balance(cpu_before, memory_before)) // 2


def _balance(cpu: int, memory: int) -> int:
    return int((1 - abs(cpu / NODE_CPU - memory / NODE_MEMORY) / 2) * 100)


class PlayedSteer(Steer):
    """Carries waves out in a simulation: replacements arrive in any order, each as soon as its pod has gone.

    Attributes:
        placements: all of them, in order.
        on_avoided: how many of them are on a node that was avoided.
    """

    def __init__(self, simulation: Simulation, min_gain: float) -> None:
        super().__init__(min_gain, KEYS)
        self._simulation = simulation
        self.placements: list[ActualPlacement] = []
        self.on_avoided = self.waves = 0

    def begin(self, wave: Wave) -> None:
        self._simulation.avoid = wave.avoid
        self.waves += 1

    def settle(self, wave: Wave, moved: Sequence[tuple[Move, Verdict]]) -> tuple[ActualPlacement, ...]:
        simulation = self._simulation
        gone = {move.pod.name: simulation.pods.pop(move.pod.name) for move, _ in moved}
        arriving = sorted(gone)
        simulation.dice.shuffle(arriving)
        came: dict[str, list[Running]] = {}
        for name in arriving:
            workload = gone[name].workload
            came.setdefault(workload.name, []).append(simulation.create(workload, simulation.names))
        # Replacements of one owner are alike: a run takes the oldest for that of the first pod that went.
        pods = [came[gone[move.pod.name].workload.name].pop(0) for move, _ in moved]
        placements = tuple(
            ActualPlacement(move, pod.node, pod.name, 1.0) for (move, _), pod in zip(moved, pods, strict=True)
        )
        self.placements += placements
        self.on_avoided += sum(each.node in wave.avoid for each in placements)
        return placements

    def end(self) -> None:
        self._simulation.avoid = {}


def play(
    scenario: Scenario,
    seed: int,  # of the load and of the scheduler's chance
    interval: float,  # seconds between two cycles
    scheduler: str = "default",  # what the policy says of the scheduler
    min_gain: float | None = None,  # replacements are steered, and a move has to bring so much; None steers nothing
    cycles: int | None = None,  # how many, if not as many as the scenario has
    nodes: int = NODES,  # how many; there are as many pods for each as in the scenario
) -> Result:
    policy = scenario.policy
    args, evictor = dict(configured(policy, "LowNodeUtilization")), configured(policy, "DefaultEvictor")
    # Not the policy's rest, which is for cycles half a minute apart, but that of life.
    args["metricsUtilization"] = {"source": "KubernetesMetrics", "selection": "relief", "scheduler": scheduler}
    strategy = LowNodeUtilization(LowNodeUtilizationArgs.model_validate(args))
    names = [f"node-{number:0{max(len(str(nodes - 1)), 2)}}" for number in range(nodes)]
    load = make_load(seed, scenario.pods * nodes // NODES, scenario.spread)
    wishes = make_wishes(load, seed) if scenario.zones else {}
    simulation = Simulation(load, random.Random(seed), wishes=wishes, names=names)
    simulation.fill(names[1::2] if scenario.half else names)

    def vary(number: int) -> None:
        if scenario.varies:
            varying = varied(load, seed, number, scenario.varies)
            simulation.factors = {each.name: varying[each.name].uses_cpu / each.uses_cpu for each in load}

    return simulation.played(strategy, evictor, bounds_of(policy), cycles or scenario.cycles, interval, min_gain, vary)
