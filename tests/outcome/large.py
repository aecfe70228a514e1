"""A large cluster, where the scheduler looks at a part of the nodes: where steered replacements land, and what it
brings.

    .venv/bin/python -m tests.outcome.large [NODES [SEED]]

Pods are even by requests and uneven by load.  The scheduler here is one of a few lines: it takes the nodes from where
it stopped last until it has enough, and scores these by requests, by siblings and by soft taints.
"""

import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import Measured
from rebalancer.eviction.steering import Landing, Move, Wave
from rebalancer.eviction.verdict import Verdict
from strategies.low_node_utilization import LowNodeUtilization, LowNodeUtilizationArgs
from tests import make
from tests.outcome.load import NODE_CPU, NODE_MEMORY, Workload, make_load

MEBIBYTE = 1 << 20
OFFERED = {"cpu": NODE_CPU, "memory": NODE_MEMORY * MEBIBYTE}


class LargeCluster:
    """Pods by node, and a scheduler that looks at `enough` nodes at a time."""

    def __init__(self, nodes: int, seed: int) -> None:
        self.names = [f"node-{number:04}" for number in range(nodes)]
        self.enough = max(nodes * max(50 - nodes // 125, 5) // 100, 100)
        self.avoid: Mapping[str, int] = {}
        self.requested = {name: [100, 200] for name in self.names}
        self.siblings: dict[str, Counter[str]] = {name: Counter() for name in self.names}
        self.pods: dict[str, tuple[str, Workload]] = {}
        self._start = 0
        load = make_load(seed, 30 * nodes)
        queue = [each for each in load for _ in range(each.replicas)]
        random.Random(seed).shuffle(queue)
        for number, workload in enumerate(queue):
            self.create(f"{workload.name}-{number}", workload)

    def create(self, name: str, workload: Workload) -> str:
        window = [self.names[(self._start + step) % len(self.names)] for step in range(self.enough)]
        self._start = (self._start + self.enough) % len(self.names)
        most = max(self.avoid.values(), default=0) or 1
        node = max(window, key=lambda each: (self._score(each, workload) - 300 * self.avoid.get(each, 0) / most, each))
        self._put(name, workload, node)
        return node

    def _put(self, name: str, workload: Workload, node: str) -> None:
        self.pods[name] = (node, workload)
        self.siblings[node][workload.name] += 1
        self.requested[node][0] += workload.cpu
        self.requested[node][1] += workload.memory

    def remove(self, name: str) -> Workload:
        node, workload = self.pods.pop(name)
        self.siblings[node][workload.name] -= 1
        self.requested[node][0] -= workload.cpu
        self.requested[node][1] -= workload.memory
        return workload

    def _score(self, node: str, workload: Workload) -> float:
        cpu, memory = self.requested[node]
        left = 100 - 50 * ((cpu + workload.cpu) / NODE_CPU + (memory + workload.memory) / NODE_MEMORY)
        return left - 100 * self.siblings[node][workload.name]

    def usage(self) -> dict[str, dict[str, int]]:
        sums = {name: dict.fromkeys(OFFERED, 0) for name in self.names}
        for node, workload in self.pods.values():
            sums[node]["cpu"] += workload.uses_cpu
            sums[node]["memory"] += workload.uses_memory * MEBIBYTE
        return sums

    def deviation(self) -> dict[str, float]:
        usage = self.usage().values()
        return {
            name: round(statistics.pstdev(100 * each[name] / OFFERED[name] for each in usage), 2) for name in OFFERED
        }

    def cluster(self) -> Cluster:
        nodes = [make.node(name, cpu=f"{NODE_CPU}m", memory=f"{NODE_MEMORY}Mi") for name in self.names]
        specs = {}
        pods = []
        for name, (node, workload) in self.pods.items():
            known = specs.get(workload.name)
            fields = {"labels": {"app": workload.name}, "owners": workload.name}
            pod = make.pod(name, node=node, cpu=f"{workload.cpu}m", memory=f"{workload.memory}Mi", **fields)
            pods.append(pod if known is None else _sharing(pod, known))
            specs.setdefault(workload.name, pod)
        usage = {pod.key: _uses(self.pods[pod.name][1]) for pod in pods}
        figures = self.usage()
        return Cluster(
            make.snapshot(nodes, pods, budgets=()),
            measure=lambda *_: Measured(nodes=figures, peaks=figures, pods=usage),
        )


def _sharing(pod, known):
    return msgspec.structs.replace(pod, spec=known.spec, labels=known.labels)


def _uses(workload: Workload) -> dict[str, int]:
    return {"cpu": workload.uses_cpu, "memory": workload.uses_memory * MEBIBYTE}


class LargeSteer:
    keys = ("kube-rebalancer/avoid", "kube-rebalancer/avoid-more")
    min_gain = 1.5

    def __init__(self, large: LargeCluster) -> None:
        self._large = large
        self.landings: list[Landing] = []
        self.on_avoided = 0
        self.waves = 0

    def closed(self, wave: Wave) -> frozenset[str]:
        return frozenset()

    def begin(self, wave: Wave) -> None:
        self._large.avoid = wave.avoid
        self.waves += 1

    def settle(self, wave: Wave, moved: Sequence[tuple[Move, Verdict]]) -> tuple[Landing, ...]:
        workloads = [self._large.remove(move.pod.name) for move, _ in moved]
        landings = []
        for number, (move, _) in enumerate(moved):
            name = f"new-{len(self.landings) + number}"
            node = self._large.create(name, workloads[number])
            self.on_avoided += node in wave.avoid
            landings.append(Landing(move, node, name, 1.0))
        self.landings += landings
        return tuple(landings)

    def end(self) -> None:
        self._large.avoid = {}


@dataclass(frozen=True)
class Outcome:
    """What a steered cycle came to; pairs are before and after it.

    Attributes:
        moves: how many pods were moved.
        waves: in how many waves.
        on_avoided: how many of them landed on a node that was avoided.
        deviation: standard deviation of the nodes, by resource, in points.
        over: nodes above their band.
        seconds: of CPU, to plan it all.
    """

    moves: int
    waves: int
    on_avoided: int
    deviation: tuple[Mapping[str, float], Mapping[str, float]]
    over: tuple[int, ...]
    seconds: float


def play(nodes: int, seed: int) -> Outcome:
    """Play one steered cycle."""
    large = LargeCluster(nodes, seed)
    before, steer, cluster = large.deviation(), LargeSteer(large), large.cluster()
    around = {"cpu": 10, "memory": 10}
    metrics = {"source": "KubernetesMetrics", "selection": "relief"}
    args = {"useDeviationThresholds": True, "thresholds": around, "targetThresholds": around}
    strategy = LowNodeUtilization(LowNodeUtilizationArgs.model_validate({**args, "metricsUtilization": metrics}))
    start = time.process_time()
    run = make.decide(cluster, strategy, steer=steer).runs[0]
    seconds = time.process_time() - start
    assert run.error is None
    over = [
        sum(getattr(node, name) == "overutilized" for node in run.observed.nodes) for name in ("state", "state_after")
    ]
    return Outcome(run.evicted, steer.waves, steer.on_avoided, (before, large.deviation()), tuple(over), seconds)


def main(nodes: int = 1000, seed: int = 1) -> None:
    """Play one steered cycle, and print what came of it."""
    played = play(nodes, seed)
    before, after = played.deviation
    sys.stdout.write(
        f"{nodes} nodes: {played.moves} moves in {played.waves} waves, {played.seconds:.1f} s of CPU; "
        f"{played.on_avoided} landed on avoided nodes; deviation {before} -> {after}; over {played.over}\n"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
