"""All objects of a cluster as they were read at one time, PodDisruptionBudgets (PDBs) among them; immutable."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from statistics import median_low
from typing import Any

import msgspec
from msgspec.structs import replace

from rebalancer.cluster.measured import NodeMetrics, PodMetrics
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import LONG_AGO, Pod
from rebalancer.cluster.scheduler_inputs import NOTHING_READ, SchedulerInputs
from rebalancer.cluster.selectors import Labels, LabelSelector
from rebalancer.cluster.taints import PREFER_NO_SCHEDULE

#: A kubelet reports every five minutes at least: nothing in a snapshot is much later than the median report.
_HEARTBEAT_LAG = timedelta(minutes=10)


#: The namespace of a PDB whose namespace could not be read: it counts for every one.
EVERY_NAMESPACE = ""


class DisruptionBudget(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A PodDisruptionBudget (PDB)."""

    namespace: str
    name: str
    selector: LabelSelector | None  # None selects nothing, an empty one every pod of the namespace
    disruptions_allowed: int = 0
    observed: bool = True  # whether the status belongs to the present spec
    current_healthy: int = 0
    desired_healthy: int = 0
    unhealthy_policy: str = "IfHealthyBudget"  # spec.unhealthyPodEvictionPolicy
    disrupted: frozenset[str] = frozenset()  # pods that the API server let go and the PDB's controller has not seen go
    problem: str = ""  # why the PDB could not be read; empty if it could.  It allows nothing then, whatever the numbers


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a cluster at one time; None stands for a kind that was not read."""

    now: datetime  # the clock of the cycle; before that is known, the time at which the objects were read
    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    namespaces: Mapping[str, Labels] | None = None  # labels by namespace
    budgets: tuple[DisruptionBudget, ...] | None = None
    priority_classes: Mapping[str, int] | None = None  # value by name
    claims: Mapping[tuple[str, str], str | None] | None = None  # storage class by (namespace, name); None for none
    node_metrics: tuple[NodeMetrics, ...] | None = None
    pod_metrics: tuple[PodMetrics, ...] | None = None
    scheduler_inputs: SchedulerInputs = NOTHING_READ  # what the scheduler reads besides nodes and pods
    scheduler_configuration: Mapping[str, Any] | None = None  # a KubeSchedulerConfiguration; None for the defaults
    warnings: tuple[str, ...] = ()
    cluster_uid: str = ""  # the UID of the namespace kube-system, which tells clusters apart; empty if it was not read

    def at(self, now: datetime) -> "Snapshot":
        """Return this snapshot with another clock."""
        return replace(self, now=now)

    def unmarked(self, avoid: Collection[str], hold: str, pressure: str) -> "Snapshot":
        """Return this snapshot without our own soft taints and labels, which are told by their keys.

        Those that steer are gone altogether.  Those that hold emptied nodes, and the marks of `rebalancer mark`, stay
        in the scheduler's view; a hold that has expired, or that no annotation explains, does not: it holds nothing,
        and a live run takes it off.
        """
        nodes = tuple(_unmarked(node, avoid, hold, pressure, self.now) for node in self.nodes)
        return replace(self, nodes=nodes)

    def newest(self) -> datetime | None:
        """Return the best estimate of the snapshot's time from its objects; None if they hold no time.

        That is the newest creation of a pod; or the median heartbeat of the nodes or the median time of the samples,
        if one of them is later.  A clock that is too late would make every pod look old, so a single odd object must
        not set it: no time after `now` counts, and none that is much later than the median heartbeat.
        """
        heartbeats = [node.seen for node in self.nodes if node.seen and node.seen <= self.now]
        heartbeat = median_low(heartbeats) if heartbeats else None
        latest = min(self.now, heartbeat + _HEARTBEAT_LAG) if heartbeat else self.now
        times = [pod.created for pod in self.pods if LONG_AGO < pod.created <= latest]
        samples = [each.taken for each in self.node_metrics or () if each.taken]
        samples += [each.taken for each in self.pod_metrics or () if each.taken]
        times += [median_low(samples)] if samples and median_low(samples) <= latest else []
        times += [heartbeat] if heartbeat else []
        return max(times, default=None)


def _unmarked(node: Node, avoid: Collection[str], hold: str, pressure: str, now: datetime) -> Node:
    def is_pressure(key: str, value: str) -> bool:
        """Labels and soft taints of this key are always ours; others are named by the node's `pressure`."""
        return key == pressure or f"{key}={value}" in node.pressure

    soft = {taint for taint in node.taints if taint.effect == PREFER_NO_SCHEDULE}
    holding = {taint for taint in soft if taint.key == hold}
    until = node.held_until if holding and node.held_until and node.held_until > now else None
    gone = {taint for taint in soft if taint.key in avoid or (taint in holding and until is None)}
    ours = {taint for taint in soft if taint in holding or is_pressure(taint.key, taint.value)}
    seen = replace(node, taints=tuple(each for each in node.taints if each not in gone), held_until=until)
    labels = {key: value for key, value in node.labels.items() if not is_pressure(key, value)}
    if len(labels) == len(node.labels) and not ours.intersection(seen.taints):
        return seen
    return replace(seen, labels=labels, taints=tuple(each for each in seen.taints if each not in ours), as_marked=seen)
