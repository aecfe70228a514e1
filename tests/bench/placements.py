"""Measures the simulated scheduler: 1,000 placements on 5,000 nodes with 150,000 pods, after one build.

The mix: 3,000 owners of 50 pods in 100 namespaces, each behind a Service and so spread by default; one in five spreads
over zones by a hard constraint, one in five by a soft one over zones and hosts, one in ten keeps apart from itself on
hosts, one in ten prefers another owner's zone, one in ten prefers a tier of nodes.  Of 50 shapes of requests.
"""

import statistics
import sys
import time
from collections.abc import Iterator
from random import Random

import msgspec

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import (
    Owner,
    Placement,
    Pod,
    PodAffinityTerm,
    PodSpec,
    PreferredTerm,
    SpreadConstraint,
    WeightedPodTerm,
)
from rebalancer.cluster.resources import parse_resources
from rebalancer.cluster.scheduler_inputs import SchedulerInputs
from rebalancer.cluster.selectors import EVERYTHING, NodeSelectorTerm, Requirement
from rebalancer.scheduling.simulator.profile import profiles
from rebalancer.scheduling.simulator.simulator import Simulator
from rebalancer.scheduling.simulator.state import State
from tests import make

NODES, OWNERS, REPLICAS, NAMESPACES = 5000, 3000, 50, 100
PLACEMENTS, RUNS, TARGET = 1000, 3, 3.0
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def nodes() -> list[Node]:
    sizes = (("16", "64Gi"), ("32", "128Gi"), ("64", "256Gi"))
    return [
        make.node(
            f"node-{number:04}",
            *sizes[number % 3],
            labels={ZONE: f"zone-{number % 3}", "tier": ("gold", "silver")[number % 2]},
            taints=("spot=x:PreferNoSchedule",) if number % 10 == 0 else (),
        )
        for number in range(NODES)
    ]


def owners(random: Random) -> Iterator[Pod]:
    """One pod of each owner, bound nowhere."""
    shapes = [
        {"cpu": f"{random.randrange(1, 9) * 50}m", "memory": f"{random.randrange(1, 17) * 64}Mi"} for _ in range(50)
    ]
    for number in range(OWNERS):
        name, namespace = f"app-{number}", f"ns-{number % NAMESPACES}"
        yield Pod(
            namespace=namespace,
            name=name,
            labels={"app": name},
            owners=(Owner("ReplicaSet", name, name, controller=True),),
            spec=PodSpec(requests=parse_resources(random.choice(shapes)), **_wishes(number)),
        )


def _wishes(number: int) -> dict[str, object]:
    own = make.selector(app=f"app-{number}")
    other = make.selector(app=f"app-{(number + NAMESPACES) % OWNERS}")
    match number % 10:
        case 0 | 1:
            return {"spread": (SpreadConstraint(1, ZONE, "DoNotSchedule", own),)}
        case 2 | 3:
            return {"spread": tuple(SpreadConstraint(1, key, "ScheduleAnyway", own) for key in (ZONE, HOST))}
        case 4:
            return {"anti_affinity": (PodAffinityTerm(HOST, own),)}
        case 5:
            near = (WeightedPodTerm(50, PodAffinityTerm(ZONE, other)),)
            return {"placement": Placement(preferred_affinity=near)}
        case 6:
            gold = NodeSelectorTerm((Requirement("tier", "In", ("gold",)),))
            return {"preferred": (PreferredTerm(10, gold),)}
    return {}


def main() -> int:
    """Print the figures; return 1 where the target is missed."""
    random = Random(1)
    places = nodes()
    templates = list(owners(random))
    pods = [
        msgspec.structs.replace(each, name=f"{each.name}-{number}", node=random.choice(places).name, phase="Running")
        for each in templates
        for number in range(REPLICAS)
    ]
    services = {(each.namespace, each.name): EVERYTHING.narrowed(each.labels, each.labels) for each in templates}
    read = SchedulerInputs(services=services, replica_sets={}, replication_controllers={}, stateful_sets={})
    start = time.perf_counter()
    state = State(make.snapshot(places, pods, namespaces={}), read)
    simulator = Simulator(state, profiles)
    sys.stdout.write(f"build: {NODES:,} nodes, {len(pods):,} pods in {time.perf_counter() - start:.2f} s\n")
    took = [_place(simulator, state, random.sample(templates, PLACEMENTS), run) for run in range(RUNS)]
    median = statistics.median(took)
    told = ", ".join(f"{each:.2f}" for each in took)
    verdict = "ok" if max(took) < TARGET else "TOO SLOW"
    sys.stdout.write(
        f"{PLACEMENTS:,} placements: median {median:.2f} s of cpu of {told}; target {TARGET} s: {verdict}\n"
    )
    return int(max(took) >= TARGET)


def _place(simulator: Simulator, state: State, templates: list[Pod], run: int) -> float:
    start = time.process_time()  # other work on the machine does not count
    for number, template in enumerate(templates):
        answer = simulator.ask(template)
        if answer.nodes:
            state.place(msgspec.structs.replace(template, name=f"new-{run}-{number}"), answer.nodes[0])
    return time.process_time() - start


if __name__ == "__main__":
    sys.exit(main())
