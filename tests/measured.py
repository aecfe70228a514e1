"""Builders for clusters whose usage is measured: 100m of cpu and 1Gi of memory are one point of a node's hundred."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from rebalancer.balancing.candidates import Selection
from rebalancer.balancing.steering.offers import Planning
from rebalancer.balancing.usage import MeasuredUsage
from rebalancer.balancing.utilization import Bounds
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import Measured
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import add, parse_resources
from rebalancer.engine.evictor import Evictor
from rebalancer.engine.gate import Gate
from rebalancer.engine.ledger import Ledger
from rebalancer.engine.limits import Limits
from rebalancer.eviction.steering import Steer
from rebalancer.policy.evictor import DefaultEvictorArgs
from strategies.high_node_utilization import HighNodeUtilization, HighNodeUtilizationArgs
from strategies.low_node_utilization import LowNodeUtilization, LowNodeUtilizationArgs
from tests import make

GIB = 1 << 30
#: Of steering's soft taints.
KEYS = ("kube-rebalancer/avoid", "kube-rebalancer/avoid-more")


class Landed(Steer):
    """What becomes of replacements, where it is not what was foreseen."""

    def __init__(self, **changes):
        super().__init__(1.5, KEYS)
        self.changes = changes
        self.ended = 0

    def settle(self, wave, moved):
        return tuple(replace(each, **self.changes) for each in super().settle(wave, moved))

    def end(self):
        self.ended += 1


#: The configuration of a scheduler that packs.
PACKS = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}]}
    ],
}
RELIEF = {"source": "KubernetesMetrics", "selection": "relief"}


def node(name: str, **fields: Any) -> Node:
    return make.node(name, **{"cpu": "10", "memory": "100Gi", **fields})


def pod(name: str, on: str = "n1", **fields: Any) -> Pod:
    """A pod that requests one point of cpu, or as told, and as many of memory, of an owner of its own."""
    cpu = fields.setdefault("cpu", "100m")
    memory = f"{parse_resources({'cpu': cpu})['cpu'] * GIB // 100}" if cpu else None
    return make.pod(name, node=on, **{"memory": memory, "owners": f"of-{name}", **fields})


def points(cpu: float = 0, memory: float = 0) -> dict[str, int]:
    return {"cpu": int(cpu * 100), "memory": int(memory * GIB)}


def cluster(
    nodes: Iterable[Node],
    pods: Iterable[Pod],
    usage: Mapping[str, float | dict[str, int] | None],
    rest: Mapping[str, float | dict[str, int]] | None = None,
    snapshot: Mapping[str, Any] | None = None,
    measured: Mapping[str, Any] | None = None,
) -> Cluster:
    """A cluster with a source that says what pods use, by name; a node uses their sum and its rest.

    A number is points of cpu; None: the source does not know the pod.  `measured` replaces fields of the figures.
    """
    nodes, pods = tuple(nodes), tuple(pods)
    by_pod = {each.key: _amounts(usage[each.name]) for each in pods if usage.get(each.name) is not None}
    sums = {each.name: _amounts((rest or {}).get(each.name, 0)) for each in nodes}
    for each in pods:
        add(sums[each.node], by_pod.get(each.key, {}))
    fields = dict(measured or {})
    given = {"nodes": sums, "peaks": fields.get("nodes", sums), "pods": by_pod, **fields}
    return Cluster(make.snapshot(nodes, pods, **(snapshot or {})), measure=lambda *_: Measured(**given))


def _amounts(amounts: float | Mapping[str, int] | None) -> dict[str, int]:
    return dict(amounts) if isinstance(amounts, Mapping) else points(amounts or 0)


def low(thresholds: float | dict[str, float] = 20, targets: float | dict[str, float] = 50, **args: Any) -> Any:
    """Thresholds on cpu and memory unless a map is given."""
    given = {"thresholds": _both(thresholds), "targetThresholds": _both(targets), "metricsUtilization": RELIEF, **args}
    return LowNodeUtilization(LowNodeUtilizationArgs.model_validate(given))


def low_anywhere(thresholds: float | dict[str, float] = 20, targets: float | dict[str, float] = 50, **args: Any) -> Any:
    """As `low`, of a scheduler that nobody knows: a destination with room is enough."""
    return low(thresholds, targets, **{"metricsUtilization": {**RELIEF, "scheduler": "unknown"}, **args})


def high(thresholds: float | dict[str, float] = 20, **args: Any) -> Any:
    """Of a scheduler that nobody knows, unless told otherwise: a destination with room is enough."""
    given = {"thresholds": _both(thresholds), "metricsUtilization": {**RELIEF, "scheduler": "unknown"}, **args}
    return HighNodeUtilization(HighNodeUtilizationArgs.model_validate(given))


def _both(percent: float | dict[str, float]) -> dict[str, float]:
    return percent if isinstance(percent, dict) else {"cpu": percent, "memory": percent}


def planner(
    on: Cluster,
    low: Mapping[str, float],
    high: Mapping[str, float],
    *,
    deviation: bool = False,
    min_gain: float = 1.5,
    evictor: Mapping[str, Any] | None = None,
    limits: Limits = Limits(),  # noqa: B008  immutable
) -> Planning:
    """Return what waves on a cluster are planned with; `evictor` as a policy spells it."""
    gate = Gate(on, limits, None, Ledger())
    evict = gate.asked_by(Evictor(on, DefaultEvictorArgs.model_validate(evictor or {})), "test", "test")
    evict = evict.with_owner_limit()
    usage = MeasuredUsage(on, on.measure(None), low)
    band = Bounds(low, high, deviation).of(usage.nodes())
    selection = Selection(on, evict, usage, lambda _: True, timedelta(0))
    return Planning(selection, band, Steer(min_gain, KEYS), [each.name for each in on.nodes], None)
