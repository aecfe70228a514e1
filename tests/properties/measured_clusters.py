"""Random clusters with measured usage, uneven enough that something has to move."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from random import Random
from typing import Any, Self, TypeVar

import msgspec
from hypothesis import strategies as st

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import Measured
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodAffinityTerm
from rebalancer.cluster.scheduler_inputs import SchedulerInputs
from rebalancer.engine.ledger import Entry, Ledger
from tests import make
from tests.measured import RELIEF
from tests.models.placement import World
from tests.models.relief import LowRelief
from tests.properties import clusters

MEBIBYTE = 1 << 20
Model = TypeVar("Model", bound=LowRelief)

#: What pods are spread by default by.
SERVICES = {(namespace, "x"): make.selector(app="x") for namespace in clusters.NAMESPACES}
READ = SchedulerInputs(services=SERVICES, replica_sets={}, replication_controllers={}, stateful_sets={})


@dataclass(frozen=True, repr=False)
class Scene:
    """A cluster, what a source says about it, and the strategy's arguments."""

    nodes: list[Node]
    pods: list[Pod]
    measured: Measured
    args: dict[str, Any]

    def __repr__(self) -> str:
        return f"Scene({len(self.nodes)} nodes, {len(self.pods)} pods, {self.measured.nodes}, {self.args})"

    def cluster(self, **more: Any) -> Cluster:
        snapshot = make.snapshot(self.nodes, self.pods, scheduler_inputs=READ, **more)
        return Cluster(snapshot, measure=lambda *_: self.measured)

    def shuffled(self, seed: int) -> Self:
        """Return the same nodes, pods and figures in another order."""
        dice, figures = Random(seed), self.measured

        def mixed(amounts: Any) -> Any:
            return amounts and dict(dice.sample(sorted(amounts.items()), len(amounts)))

        parts = (mixed(each) for each in (figures.nodes, figures.peaks, figures.pods, figures.pod_nodes))
        nodes, pods = (dice.sample(each, len(each)) for each in (self.nodes, self.pods))
        return type(self)(nodes, pods, Measured(*parts, window=figures.window), self.args)

    def model(
        self,
        kind: type[Model],
        measured: Measured | None = None,
        targets: Mapping[str, float] | None = None,
        **more: Any,
    ) -> Model:
        """Return the model of a strategy: with other figures than a source's, and targets, if these are given."""
        figures, args = measured or self.measured, self.args
        gone: dict[str, Counter[str]] = {}
        for key, name in figures.pod_nodes.items():
            gone.setdefault(name, Counter()).update((figures.pods or {})[key])
        homes = {pod.key for pod in self.pods}
        return kind(
            World(self.nodes, list(self.pods)),
            make.NOW,
            figures.nodes,
            figures.peaks,
            None if figures.pods is None else {key: each for key, each in figures.pods.items() if key in homes},
            gone,
            figures.window,
            exact(args["thresholds"]),
            exact(targets or args["targetThresholds"]),
            args.get("useDeviationThresholds", False),
            args.get("numberOfNodes", 0),
            args.get("evictionLimits", {}).get("node"),
            args.get("metricsUtilization", {}).get("scheduler") != "unknown",
            [(namespace, selector) for (namespace, _), selector in SERVICES.items()],
            **more,
        )


def exact(percents: Mapping[str, float]) -> dict[str, Fraction]:
    """Return percentages without rounding."""
    return {name: Fraction(each) for name, each in percents.items()}


def destination(entry: Entry) -> str:
    """The node that a pod is charged to."""
    assert entry.destination
    return entry.destination.nodes[0]


def verdicts(ledger: Ledger) -> list[tuple[Any, ...]]:
    """All that a ledger tells of pods, in order."""
    return [
        (str(each.pod), each.because, each.destination, each.verdict) for each in ledger.evictions + ledger.refusals
    ]


def _with_slots(node: Node, pods: int) -> Node:
    """The same node with so many places for pods, unless it has few."""
    return msgspec.structs.replace(node, allocatable={**node.allocatable, "pods": min(pods, node.allocatable["pods"])})


def _template(dice: clusters.Dice) -> Pod:
    repels = PodAffinityTerm("kubernetes.io/hostname", make.selector(app="x"))
    return dice.template(anti_affinity=dice.often((), (repels,)))


def _dressed(dice: clusters.Dice, pod: Pod) -> Pod:
    """The same pod of one of many owners, some of them Jobs, young or old."""
    name = dice.choice("abcdefghij")
    owner = make.owner(name, kind=dice.often("ReplicaSet", "Job"))
    age = timedelta(seconds=dice.choice((60, 400, *[2000] * 6)))
    owners = (owner,) if pod.owners else ()
    return msgspec.structs.replace(pod, owners=owners, created=make.NOW - age, started=make.NOW - age)


def _amounts(dice: clusters.Dice, scale: int) -> dict[str, int]:
    few = (0, 1, 1, 2, 3, 4, 4, 6)
    return {"cpu": scale * 25 * dice.choice(few), "memory": scale * 256 * MEBIBYTE * dice.choice(few)}


def _measure(dice: clusters.Dice, nodes: list[Node], pods: list[Pod]) -> Measured:
    usage = {pod.key: _amounts(dice, dice.choice((2, 3, 5))) for pod in pods if dice.often(True, False)}
    gone = {("gone", f"g{number}"): dice.choice(nodes).name for number in range(dice.randint(0, 3))}
    figures, peaks = {}, {}
    for node in nodes:
        if dice.random() < 1 / 16:
            continue
        sums = _amounts(dice, 1)
        for pod in pods:
            for name, amount in usage.get(pod.key, {}).items():
                sums[name] += amount if pod.node == node.name else 0
        figures[node.name] = sums
        more = _amounts(dice, 1) if dice.random() < 1 / 4 else {"cpu": 0, "memory": 0}
        peaks[node.name] = {name: amount + more[name] for name, amount in sums.items()}
    usage |= {key: _amounts(dice, 2) for key in gone}
    window = dice.choice((timedelta(0), timedelta(minutes=1), timedelta(minutes=15)))
    if dice.random() < 1 / 8:
        return Measured(figures, peaks, None, {}, {}, window)
    return Measured(figures, peaks, usage, gone, {}, window)


def _args(dice: clusters.Dice) -> dict[str, Any]:
    names = dice.choice((("cpu",), ("cpu", "memory"), ("cpu", "memory"), ("cpu", "memory", "pods"), ("pods",)))
    low, high = dice.choice(((20, 30), (30, 50), (40, 42.5)))
    args = {"thresholds": dict.fromkeys(names, low), "targetThresholds": dict.fromkeys(names, high)}
    if dice.random() < 1 / 3 and names != ("pods",):
        args |= {"useDeviationThresholds": True, "thresholds": dict.fromkeys(names, 5)}
    if dice.random() < 1 / 8:
        args |= {"evictionLimits": {"node": dice.randint(0, 2)}, "numberOfNodes": dice.randint(0, 2)}
    scheduler = {"scheduler": "unknown"} if dice.random() < 1 / 3 else {}
    return {**args, "metricsUtilization": {**RELIEF, **scheduler}}


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """Draw a cluster with two crowded nodes, figures and arguments."""
    dice = clusters.Dice(draw(st.integers(0, 2**32)))
    slots = dice.choice((110, 25, 13))
    nodes = [_with_slots(dice.node(f"n{number}"), slots) for number in range(draw(st.integers(3, 9)))]
    templates = [_template(dice) for _ in range(3)]
    pods = []
    for number in range(draw(st.integers(0, 45))):
        place = dice.choice(dice.choice((nodes, nodes[:2], nodes[:2])))
        name, namespace = f"p{number % 15}", clusters.NAMESPACES[number // 15]
        pods.append(_dressed(dice, dice.replica(dice.choice(templates), name, namespace, place)))
    return Scene(nodes, pods, _measure(dice, nodes, pods), _args(dice))


@st.composite
def sparse_scenes(draw: st.DrawFn) -> Scene:
    """Draw a cluster whose nodes are nearly idle, of groups or not, with arguments of compaction."""
    dice = clusters.Dice(draw(st.integers(0, 2**32)))
    nodes = [_labelled(dice, f"n{number}") for number in range(draw(st.integers(3, 6)))]
    templates = [_template(dice) for _ in range(3)]
    pods = []
    for number in range(draw(st.integers(3, 14))):
        pod = dice.replica(dice.choice(templates), f"p{number}", dice.choice(clusters.NAMESPACES), dice.choice(nodes))
        holding = "cluster-autoscaler.kubernetes.io/safe-to-evict" if dice.random() < 1 / 20 else ""
        pods.append(msgspec.structs.replace(_dressed(dice, pod), holding=holding))
    return Scene(nodes, pods, _measure(dice, nodes, pods), _compaction(dice))


def _labelled(dice: clusters.Dice, name: str) -> Node:
    node = dice.node(name)
    labels = node.labels | dice.choice(({}, {"group": "a"}, {"group": "b"}))
    keeping = "karpenter.sh/do-not-disrupt" if dice.random() < 1 / 16 else ""
    return msgspec.structs.replace(node, labels=labels, keeping=keeping)


def _compaction(dice: clusters.Dice) -> dict[str, Any]:
    names = dice.choice((("cpu",), ("cpu", "memory"), ("cpu", "memory", "pods")))
    args: dict[str, Any] = {"selection": "compaction", "thresholds": dict.fromkeys(names, dice.choice((30, 60, 60)))}
    if dice.random() < 1 / 2:
        args["metricsUtilization"] = {"source": "KubernetesMetrics", "scheduler": dice.choice(("default", "unknown"))}
    if dice.random() < 1 / 4:
        args["keepFree"] = {dice.choice(("cpu", "memory")): dice.choice((10, 50, 80))}
    if dice.random() < 1 / 4:
        args["nodeGroups"] = {"label": "group", "keep": dice.randint(0, 2)}
    if dice.random() < 1 / 4:
        args |= {"destinationThresholds": {"cpu": dice.choice((60, 90))}, "numberOfNodes": dice.randint(0, 1)}
    return args
