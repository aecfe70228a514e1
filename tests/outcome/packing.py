"""Nodes emptied, in the outcome's simulation: by compaction, by the descheduler's rule, and by no more than a bound.

    .venv/bin/python -m tests.outcome.packing [SEED ...]

All rules begin with the same pods on the same nodes.  A node is empty if only its agent runs there.
"""

import random
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rebalancer.cluster.cluster import Cluster
from strategies.high_node_utilization import HighNodeUtilization, HighNodeUtilizationArgs
from tests import make
from tests.measured import PACKS
from tests.outcome.load import NODE_CPU, NODE_MEMORY, NODE_PODS, Workload, make_load
from tests.outcome.result import Result
from tests.outcome.scenarios import SCENARIOS, Scenario, bounds_of, configured, in_reference_words
from tests.outcome.simulation import AGENT_REQUESTS, NAMES, OLD, Simulation

OFFERED = (NODE_CPU, NODE_MEMORY)


@dataclass
class PackedCluster(Simulation):
    """The same with room that ends, and a scheduler that packs or spreads."""

    packs: bool = False

    def cluster(self) -> Cluster:
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


def play_packing(
    scenario: Scenario, seed: int, *, plain: bool = False, packs: bool = False, half: bool = False
) -> Result:
    """Play a scenario's cycles.

    Args:
        scenario: the situation.
        seed: of the load and of the scheduler's chance.
        plain: whether the descheduler's rule is played; else compaction, steered if the scheduler does not pack.
        packs: whether the scheduler packs.
        half: whether thresholds are such that the emptier half of the nodes is underutilized, not the policy's.
    """
    policy = in_reference_words(scenario.policy) if plain else scenario.policy
    args = dict(configured(policy, "HighNodeUtilization"))
    simulation = PackedCluster(make_load(seed, scenario.pods, scenario.spread), random.Random(seed))
    simulation.fill(NAMES)
    simulation.packs = packs
    if half:
        args["thresholds"] = dict.fromkeys(("cpu", "memory"), _median_share(simulation))
    strategy, min_gain = (
        HighNodeUtilization(HighNodeUtilizationArgs.model_validate(args)),
        None if plain or packs else 1.5,
    )
    evictor = configured(policy, "DefaultEvictor")
    return simulation.played(strategy, evictor, bounds_of(policy), scenario.cycles, 330.0, min_gain)


def _median_share(simulation: PackedCluster) -> float:
    shares = (
        max(100 * cpu / NODE_CPU, 100 * memory / NODE_MEMORY) for cpu, memory, _ in requested(simulation).values()
    )
    return statistics.median(shares)


def main(seeds: Sequence[int]) -> None:
    for seed in seeds:
        for half in (False, True):
            for plain, packs in ((True, False), (True, True), (False, False), (False, True)):
                played = play_packing(SCENARIOS["pack"], seed, plain=plain, packs=packs, half=half)
                rule = "the descheduler's rule" if plain else "compaction" if packs else "compaction, steered"
                sys.stdout.write(
                    f"load {seed}, thresholds {'of half the nodes' if half else 'of all nodes'}, "
                    f"{'packing' if packs else 'spreading'} scheduler, {rule}: evictions {played.by_cycle}, "
                    f"{played.end.empty} of at most {len(NAMES) - played.needed} nodes empty, "
                    f"{played.emptied_per_eviction:.3f} per eviction "
                    f"(at best {played.end.empty / max(played.fewest_evictions, 1):.3f})\n"
                )
                sys.stdout.flush()


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or [1, 2, 3])
