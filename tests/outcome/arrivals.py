"""How often replacements land where they are named, on random clusters, whatever order they arrive in.

A few pods of different owners go at once.  They take some seconds to end, controllers take a moment to replace them, at
once or when the old pod is gone, and the simulated scheduler places what comes, by chance where nodes tie.  That is
repeated with other times.  `python tests/outcome/arrivals.py NODES PODS CLUSTERS` prints how often the landing is named
with the answers in turn and with those of a report, and how many nodes they name.
"""

import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))  # a script's own folder is on the path, the repository is not

import msgspec

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.placement import Placement, PodAffinityTerm, WeightedPodTerm
from rebalancer.cluster.pod import Pod, SpreadConstraint
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.replacement import Moment
from rebalancer.scheduling.worlds import Worlds
from tests import make
from tests.properties.scheduled_clusters import HOST, NAMESPACES, ZONE
from tests.properties.test_simulated_scheduler import READ

TIMES = 12  # how often the same pods go
GAP = 0.02  # seconds from one eviction to the next
DELAY = 0.05  # seconds that a controller may take
GRACES = (1.0, 2.0, 5.0, 30.0)  # seconds that pods take to end
KINDS = ("ReplicaSet", "ReplicaSet", "StatefulSet", "Job")

#: By pod, the nodes that are named for it.
Named = Mapping[Pod, Collection[str]]


@dataclass
class Score:
    """How many replacements came, and of each way to answer how many were named and how many nodes it names."""

    came: int = 0
    pods: int = 0
    hits: Counter[str] = field(default_factory=Counter)
    nodes: Counter[str] = field(default_factory=Counter)

    def missed(self, way: str) -> float:
        """The share of replacements that landed on a node that was not named."""
        return 1 - self.hits[way] / self.came

    def width(self, way: str) -> float:
        """How many nodes are named for a pod on average."""
        return self.nodes[way] / self.pods


def measure(seeds: Collection[int], nodes: int, count: int) -> Score:
    """Let so many pods go on one cluster for each seed."""
    score = Score()
    for seed in seeds:
        random = Random(seed)
        cluster = random_cluster(random, nodes)
        in_turn, expected = plan(cluster, random, count)
        worlds = cluster.index(Worlds)
        worlds.played(expected)
        ways = {"in turn": in_turn, "report": {pod: tuple(worlds.shares(pod)) for pod in expected}}
        score.pods += len(expected)
        for way, named in ways.items():
            score.nodes[way] += sum(map(len, named.values()))
        for pod, landed in (each for _ in range(TIMES) for each in arrivals(cluster, tuple(expected), random)):
            score.came += 1
            score.hits.update(way for way, named in ways.items() if landed in named[pod])
    return score


def random_cluster(random: Random, number: int) -> Cluster:
    """Return nodes in three zones with pods of owners that wish this and that, mostly where the scheduler puts them."""
    nodes = [_node(random, index) for index in range(number)]
    phase = make.cluster(nodes, [], namespaces=NAMESPACES, companions=READ).index(Simulation).phase()
    pods: list[Pod] = []
    for pod in (each for index in range(3 * number) for each in _owned(random, f"o{index}")):
        answer = phase.ask(pod, "", None, None)
        if answer.nodes:
            name = random.choice(answer.nodes if random.random() < 0.6 else answer.feasible_nodes())
            pods.append(msgspec.structs.replace(pod, node=name))
            phase.exchange(name, None, pods[-1])
    return make.cluster(nodes, pods, namespaces=NAMESPACES, companions=READ)


def _node(random: Random, index: int) -> Node:
    name, memory = f"n{index:02}", random.choice(("8Gi", "15Gi", "16Gi"))
    taints = ("soft-1=x:PreferNoSchedule",) if random.random() < 0.15 else ()
    labels = {ZONE: random.choice("abc"), HOST: name}
    return make.node(name, cpu=random.choice(("4", "6", "8")), memory=memory, labels=labels, taints=taints)


def _owned(random: Random, app: str) -> Iterator[Pod]:
    """Yield the pods of one owner."""
    team = random.choice("xy")
    selectors = (make.selector(app=app), make.selector(team=team))
    fields: dict[str, Any] = {
        "namespace": "blue",
        "cpu": random.choice(("100m", "250m", "500m", "1", "1500m")),
        "memory": random.choice(("128Mi", "512Mi", "1Gi", "2Gi")),
        "labels": {"app": app, "team": team},
        "owners": (make.owner(app, random.choice(KINDS)),),
        "spread": tuple(_spread(random, selectors) for _ in range(random.choice((0, 0, 1, 2)))),
        "placement": Placement(
            preferred_affinity=tuple(_wish(random, selectors) for _ in range(random.choice((0, 0, 0, 1)))),
            preferred_anti_affinity=tuple(_wish(random, selectors) for _ in range(random.choice((0, 0, 0, 1)))),
        ),
    }
    for number in range(random.randint(1, 3)):
        yield make.pod(f"{app}-{number}", **fields)


def _spread(random: Random, selectors: Sequence[Any]) -> SpreadConstraint:
    action = random.choice(("ScheduleAnyway", "ScheduleAnyway", "DoNotSchedule"))
    return SpreadConstraint(1, random.choice((HOST, ZONE)), action, random.choice(selectors))


def _wish(random: Random, selectors: Sequence[Any]) -> WeightedPodTerm:
    term = PodAffinityTerm(random.choice((HOST, ZONE)), random.choice(selectors), (), None)
    return WeightedPodTerm(random.choice((1, 50)), term)


def plan(cluster: Cluster, random: Random, count: int) -> tuple[Named, Mapping[Pod, str]]:
    """Let pods go that would land elsewhere, and return the nodes named in turn, and those that the plan counts on."""
    named: dict[Pod, Collection[str]] = {}
    expected: dict[Pod, str] = {}
    owners: set[str] = set()
    with cluster.scope():
        for pod in random.sample(cluster.snapshot.pods, len(cluster.snapshot.pods)):
            found = tuple(cluster.index(Worlds).look(pod))
            if len(named) == count or not found or pod.node in found or pod.owners[0].name in owners:
                continue
            owners.add(pod.owners[0].name)
            node = cluster.node(cluster.index(Simulation).ask(pod).nodes[0])
            assert node
            cluster.place(pod, node)
            cluster.evicted(pod)
            named[pod], expected[pod] = found, node.name
    return named, expected


def arrivals(cluster: Cluster, pods: Sequence[Pod], random: Random) -> Iterator[tuple[Pod, str]]:
    """Evict pods one after the other, and yield where their replacements land, in the order in which they arrive."""
    simulation, events = cluster.index(Simulation), []
    for number, pod in enumerate(pods):
        gone = GAP * number + random.choice(GRACES)
        waits = random.choice(simulation.replacement(pod).moments) is Moment.AFTERWARDS
        comes = (gone if waits else GAP * number) + random.uniform(0.001, DELAY)
        events += [(GAP * number, number, "goes"), (gone, number, "is gone"), (comes, number, "comes")]
    world = make.cluster(cluster.snapshot.nodes, cluster.snapshot.pods, namespaces=NAMESPACES, companions=READ)
    phase = world.index(Simulation).phase()
    for _, number, what in sorted(events):
        pod, ending = pods[number], simulation.ending(pods[number])
        if what == "goes":
            phase.exchange(pod.node, pod, ending)
        elif what == "is gone":
            phase.exchange(pod.node, ending, None)
        elif landed := _landed(phase, simulation.replacement(pod).pod, random):
            yield pod, landed


def _landed(phase: Any, coming: Pod | None, random: Random) -> str:
    assert coming
    answer = phase.ask(coming, "", None, None)
    node = random.choice(answer.nodes) if answer.nodes else ""
    if node:
        phase.exchange(node, None, coming)
    return node


if __name__ == "__main__":
    number_of_nodes, number_of_pods, clusters = map(int, sys.argv[1:])
    result = measure(range(clusters), number_of_nodes, number_of_pods)
    sys.stdout.write(f"{result.pods} pods went, {result.came} replacements came\n")
    for each in result.nodes:
        line = f"{each:10} {100 * result.missed(each):6.2f} % landed elsewhere, {result.width(each):6.2f} nodes named"
        sys.stdout.write(line + "\n")
