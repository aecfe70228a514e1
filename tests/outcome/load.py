"""The load of a made-up cluster: what pods request, and, independent of that, what they use.

The figures are chosen so that, with all pods on half of the nodes, the nodes' standard deviations are those that the
reference was measured from: 28.9 points of cpu and 38.1 of memory (see `verdict`).
"""

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

NODES = 30
NODE_CPU = 16_000  # millicores
NODE_MEMORY = 65_536  # MiB
NODE_PODS = 110  # with the agent

# What a pod uses on average; 40 of them fill a node to about 57 % of cpu and 76 % of memory.
MEAN_CPU = 228  # millicores
MEAN_MEMORY = 1_241  # MiB
# Standard deviations over means: most pods are light and a few are heavy, of cpu more than of memory.
CPU_SPREAD = 1.2
MEMORY_SPREAD = 0.7
# So that no pod is larger than a tenth or so of a node.
CPU_CEILING = 7.0  # times the mean
MEMORY_CEILING = 5.0

OWNER_SIZES = (1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 10, 12)
CPU_REQUESTS = (50, 100, 150, 250, 400)  # millicores
MEMORY_REQUESTS = (128, 256, 512, 1024, 1536)  # MiB


@dataclass(frozen=True)
class Workload:
    """Pods of one owner, all alike."""

    name: str  # of the owner
    replicas: int  # how many pods
    cpu: int  # what each requests, in millicores
    memory: int  # the same in MiB
    uses_cpu: int  # what each uses, in millicores
    uses_memory: int  # the same in MiB

    @property
    def guarded(self) -> bool:
        return self.replicas > 2

    def times(self, factor: float) -> "Workload":
        return replace(self, uses_cpu=round(self.uses_cpu * factor), uses_memory=round(self.uses_memory * factor))


def make_load(seed: int, pods: int, spread: float = 1.0) -> list[Workload]:
    """Make workloads of so many pods together; the same for the same arguments.

    Args:
        seed: Of everything that is drawn.
        pods: How many pods in all.
        spread: How uneven what pods use is, as a multiple of the spreads above; with 0 all use the same, and
            request the same, so that nodes are even by both.
    """
    rng = random.Random(seed)
    sizes = list(_sizes(rng, pods))
    cpu = _usages(rng, sizes, MEAN_CPU, CPU_SPREAD * spread, CPU_CEILING)
    memory = _usages(rng, sizes, MEAN_MEMORY, MEMORY_SPREAD * spread, MEMORY_CEILING)
    return [
        Workload(
            name=f"owner-{number:03}",
            replicas=replicas,
            cpu=rng.choice(CPU_REQUESTS if spread else CPU_REQUESTS[:1]),
            memory=rng.choice(MEMORY_REQUESTS if spread else MEMORY_REQUESTS[:1]),
            uses_cpu=cpu[number],
            uses_memory=memory[number],
        )
        for number, replicas in enumerate(sizes)
    ]


def points(load: Iterable[Workload], places: Iterable[tuple[str, str]]) -> dict[str, list[tuple[float, float]]]:
    """Return by node what each pod uses there, in percent of a node: cpu and memory.

    Args:
        load: the workloads.
        places: the workload's name and the node of each pod.
    """
    of = {each.name: (100 * each.uses_cpu / NODE_CPU, 100 * each.uses_memory / NODE_MEMORY) for each in load}
    found: dict[str, list[tuple[float, float]]] = {}
    for name, node in places:
        found.setdefault(node, []).append(of[name])
    return found


def varied(load: Iterable[Workload], seed: int, cycle: int, by: float) -> Mapping[str, Workload]:
    """Return the workloads by name as they are in one cycle: each uses more or less, by at most this share."""
    rng = random.Random(f"{seed} {cycle}")
    return {workload.name: workload.times(rng.uniform(1 - by, 1 + by)) for workload in load}


def nodes_needed(load: Iterable[Workload]) -> int:
    """Return how many nodes the requests fill: of cpu, of memory or by number, whichever needs most.

    No packing needs fewer; what pods leave over, and what agents request, is not counted.
    """
    sums = [0, 0, 0]
    for each in load:
        for index, amount in enumerate((each.cpu, each.memory, 1)):
            sums[index] += each.replicas * amount
    offered = (NODE_CPU, NODE_MEMORY, NODE_PODS - 1)
    return max(math.ceil(total / each) for total, each in zip(sums, offered, strict=True))


def scattered(load: Sequence[Workload], seed: int, nodes: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Return by owner the node of each pod, drawn at random; those of one owner on different nodes.

    No scheduler has chosen them: so a cluster may be after a time in which nodes came and pods went.
    """
    dice = random.Random(seed)
    found: dict[str, list[str]] = {each.name: [] for each in load}
    for each in load:
        drawn = found[each.name]
        while len(drawn) < each.replicas:
            drawn += dice.sample(list(nodes), min(len(nodes), each.replicas - len(drawn)))
    return found


def _sizes(rng: random.Random, pods: int) -> Iterable[int]:
    while pods:
        size = min(rng.choice(OWNER_SIZES), pods)
        yield size
        pods -= size


def _usages(rng: random.Random, sizes: list[int], mean: int, spread: float, ceiling: float) -> list[int]:
    """Draw a usage for each owner, lognormal, scaled so that the mean over all pods is as given."""
    sigma = math.sqrt(math.log(1 + spread**2))
    drawn = [min(rng.lognormvariate(-(sigma**2) / 2, sigma), ceiling) for _ in sizes]
    scale = mean * sum(sizes) / sum(size * usage for size, usage in zip(sizes, drawn, strict=True))
    return [max(1, round(usage * scale)) for usage in drawn]
