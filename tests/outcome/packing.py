"""Nodes emptied, in the outcome's simulation: by compaction, by the descheduler's rule, and by no more than a bound.

    .venv/bin/python -m tests.outcome.packing [SEED ...]

All rules begin with the same pods on the same nodes.  A node is empty if only its agent runs there.
"""

import random
import statistics
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rebalancer.cluster.cluster import Cluster
from strategies.high_node_utilization import HighNodeUtilization, HighNodeUtilizationArgs
from tests import make
from tests.measured import PACKS
from tests.outcome.load import NODE_CPU, NODE_MEMORY, NODE_PODS, Workload, make_load, nodes_needed
from tests.outcome.policies import in_reference_words
from tests.outcome.scenarios import SCENARIOS, Scenario
from tests.outcome.simulation import AGENT_REQUESTS, NAMES, OLD, PlayedSteer, Simulation

OFFERED = (NODE_CPU, NODE_MEMORY)


@dataclass
class PackedCluster(Simulation):
    """The same with room that ends, and a scheduler that packs or spreads."""

    packs: bool = False

    def cluster(self) -> Cluster:
        """Return the cluster as a strategy gets it, with what the scheduler is told."""
        built = super().cluster().snapshot
        configuration = PACKS if self.packs else None
        agents = [pod for pod in built.pods if pod.owners[0].kind == "DaemonSet"]
        others = [pod for pod in built.pods if pod.owners[0].kind != "DaemonSet"]
        cpu, memory = (f"{AGENT_REQUESTS[0]}m", f"{AGENT_REQUESTS[1]}Mi")
        again = [
            make.pod(pod.name, node=pod.node, cpu=cpu, memory=memory, owners=pod.owners, age=OLD) for pod in agents
        ]
        fields = {"budgets": built.budgets, "scheduler_configuration": configuration}
        return Cluster(make.snapshot(built.nodes, [*others, *again], **fields))

    def _choose(self, workload: Workload, nodes: Sequence[str]) -> str:
        asked = requested(self)
        able = [name for name in nodes if _fits(asked[name], workload)]
        if not self.packs:
            return super()._choose(workload, able)
        scores = {name: _most_allocated(asked[name], workload) for name in able}
        return self.dice.choice([name for name in able if scores[name] == max(scores.values())])


Asked = tuple[int, int, int]


def requested(simulation: Simulation) -> Mapping[str, Asked]:
    """Return by node what its pods and its agent request, of cpu and memory, and how many they are."""
    sums = {name: [*AGENT_REQUESTS, 1] for name in NAMES}
    for pod in simulation.pods.values():
        for index, amount in enumerate((pod.workload.cpu, pod.workload.memory, 1)):
            sums[pod.node][index] += amount
    return {name: (cpu, memory, count) for name, (cpu, memory, count) in sums.items()}


def _fits(asked: Asked, workload: Workload) -> bool:
    cpu, memory, count = asked
    return cpu + workload.cpu <= NODE_CPU and memory + workload.memory <= NODE_MEMORY and count < NODE_PODS


def _most_allocated(asked: Asked, workload: Workload) -> int:
    shares = zip(asked, (workload.cpu, workload.memory), OFFERED, strict=False)
    return sum((there + more) * 100 // offered for there, more, offered in shares) // 2


@dataclass(frozen=True)
class Packed:
    """What the cycles came to."""

    pods: Mapping[str, int]  # by node, how many there were at the start
    needed: int  # how many nodes bin packing needs at least, by the larger resource
    evictions: Sequence[int]  # by cycle
    emptied: int  # how many nodes were empty in the end

    @property
    def per_eviction(self) -> float:
        """Nodes emptied per eviction; 0 if nothing was evicted."""
        return self.emptied / sum(self.evictions) if any(self.evictions) else 0.0

    @property
    def most(self) -> int:
        """How many nodes could be empty at most."""
        return len(self.pods) - self.needed

    @property
    def best_per_eviction(self) -> float:
        """Nodes emptied per eviction if only the nodes with the fewest pods had lost them, once."""
        return self.emptied / self.fewest_evictions if self.emptied else 0.0

    @property
    def fewest_evictions(self) -> int:
        """How many pods had to go at least for so many empty nodes."""
        return sum(sorted(self.pods.values())[: self.emptied])


def play_packing(
    scenario: Scenario, seed: int, *, plain: bool = False, packs: bool = False, half: bool = False
) -> Packed:
    """Play a scenario's cycles.

    Args:
        scenario: the situation.
        seed: of the load and of the scheduler's chance.
        plain: whether the descheduler's rule is played; else compaction, steered if the scheduler does not pack.
        packs: whether the scheduler packs.
        half: whether thresholds are such that the emptier half of the nodes is underutilized, not the policy's.
    """
    policy = scenario.policy
    policy = in_reference_words(policy) if plain else policy
    configured = {each["name"]: each["args"] for profile in policy["profiles"] for each in profile["pluginConfig"]}
    args = dict(configured["HighNodeUtilization"])
    simulation = PackedCluster(make_load(seed, scenario.pods, scenario.spread), random.Random(seed))
    simulation.fill(NAMES)
    simulation.packs = packs
    if half:
        args["thresholds"] = dict.fromkeys(("cpu", "memory"), _median_share(simulation))
    strategy = HighNodeUtilization(HighNodeUtilizationArgs.model_validate(args))
    start, evictions = _counts(simulation), []
    for _ in range(scenario.cycles):
        steer = None if plain or packs else PlayedSteer(simulation, 1.5)
        evictor = configured["DefaultEvictor"]
        _, replaced = simulation.cycle(simulation.cluster(), strategy, NAMES, steer, evictor=evictor)
        simulation.clock += 330
        evictions.append(len(replaced))
    emptied = sum(not count for count in _counts(simulation).values())
    return Packed(start, nodes_needed(simulation.load), evictions, emptied)


def _median_share(simulation: PackedCluster) -> float:
    """Return the median of the nodes' larger share, in percent."""
    shares = (
        max(100 * cpu / NODE_CPU, 100 * memory / NODE_MEMORY) for cpu, memory, _ in requested(simulation).values()
    )
    return statistics.median(shares)


def _counts(simulation: Simulation) -> Mapping[str, int]:
    counts = Counter(pod.node for pod in simulation.pods.values())
    return {name: counts[name] for name in NAMES}


def main(seeds: Sequence[int]) -> None:
    """Print a line for each rule, scheduler and load."""
    for seed in seeds:
        for half in (False, True):
            for plain, packs in ((True, False), (True, True), (False, False), (False, True)):
                played = play_packing(SCENARIOS["pack"], seed, plain=plain, packs=packs, half=half)
                rule = "the descheduler's rule" if plain else "compaction" if packs else "compaction, steered"
                sys.stdout.write(
                    f"load {seed}, thresholds {'of half the nodes' if half else 'of all nodes'}, "
                    f"{'packing' if packs else 'spreading'} scheduler, {rule}: evictions {played.evictions}, "
                    f"{played.emptied} of at most {played.most} nodes empty, {played.per_eviction:.3f} per eviction "
                    f"(at best {played.best_per_eviction:.3f})\n"
                )
                sys.stdout.flush()


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or [1, 2, 3])
