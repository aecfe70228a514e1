"""All objects of a cluster as they were read at one time; immutable."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from rebalancer.cluster.companions import NOTHING_READ, Companions
from rebalancer.cluster.measured import NodeMetrics, PodMetrics
from rebalancer.cluster.node import Node
from rebalancer.cluster.pdb import DisruptionBudget
from rebalancer.cluster.pod import LONG_AGO, Pod
from rebalancer.cluster.selectors import Labels


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a cluster at one time; None stands for a kind that was not read.

    Attributes:
        now: the clock of the cycle.
        namespaces: labels by namespace.
        priority_classes: value by name.
        claims: storage class by (namespace, name) of a PersistentVolumeClaim; None for a claim without one.
        companions: what the scheduler reads beside nodes and pods.
    """

    now: datetime
    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    namespaces: Mapping[str, Labels] | None = None
    budgets: tuple[DisruptionBudget, ...] | None = None
    priority_classes: Mapping[str, int] | None = None
    claims: Mapping[tuple[str, str], str | None] | None = None
    node_metrics: tuple[NodeMetrics, ...] | None = None
    pod_metrics: tuple[PodMetrics, ...] | None = None
    companions: Companions = NOTHING_READ
    warnings: tuple[str, ...] = ()

    def at(self, now: datetime) -> "Snapshot":
        """Return this snapshot with another clock."""
        return msgspec.structs.replace(self, now=now)

    def newest(self) -> datetime | None:
        """Return the newest time that the objects carry, the nearest thing to the time of the snapshot."""
        times = [node.seen for node in self.nodes if node.seen]
        for pod in self.pods:
            times += [pod.created] if pod.created is not LONG_AGO else []
            times += [each.changed for each in pod.conditions if each.changed]
        times += [each.taken for each in self.node_metrics or () if each.taken]
        times += [each.taken for each in self.pod_metrics or () if each.taken]
        return max(times, default=None)
