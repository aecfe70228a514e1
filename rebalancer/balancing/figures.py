"""Measured usage as the choice of pods needs it: what really is above target, and what is not yet to be seen.

A figure that sums up a window stays high after pods have left and low after pods have come.  So a node counts with the
lower of two figures as a source: that of the window, and what its present pods use plus what no pod accounts for.  And
as a destination it is charged with the pods that came too late to be seen.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from math import ceil

from rebalancer.args.usage import REST
from rebalancer.balancing.level import Level
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import Measured
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import CPU, MEMORY, METRIC_RESOURCE, PODS, Resources, add
from rebalancer.errors import StrategyError
from rebalancer.eviction.verdict import Refused

#: No window is shorter than this for the question which pods it shows.
_SHORTEST = timedelta(minutes=5)

#: Pods of one owner that were created within so much time were created together.
_TOGETHER = timedelta(seconds=15)

#: Such a share of an owner's pods may be moved in one cycle.
_MOVED_AT_ONCE = 0.25


class Figures:
    """The figures of one source for the nodes of a cycle.

    Attributes:
        pods_known: whether the source knows anything of pods.
    """

    def __init__(self, cluster: Cluster, measured: Measured, names: Iterable[str], *, rest: timedelta = REST) -> None:
        """Take the figures of the resources named; `rest` is how long a replacement is not moved again.

        Raises:
            StrategyError: a resource is neither measured nor `pods`.
        """
        self._cluster = cluster
        self._measured = measured
        self._rest = rest
        self._names = tuple(sorted(names))
        self._known = tuple(sorted(next(iter(measured.nodes.values()), ())))
        if unknown := [name for name in self._names if measured.nodes and name not in {*self._known, PODS}]:
            raise StrategyError(f"thresholds name {', '.join(unknown)}, which this source does not measure")
        self.pods_known = measured.pods is not None
        self._youth = max(measured.window, _SHORTEST)
        self._homes = {pod.key: pod.node for pod in cluster.snapshot.pods}
        self._seen = self._pods_by_node()
        self._first_came = self._first_creations()

    def loads(self) -> list[Level]:
        """Return what nodes with a fresh sample use of the resources named, as measured, in the order of names."""
        return [
            Level(node, {name: self._figure(node, name, self._measured.nodes[node.name]) for name in self._names})
            for node in self._cluster.nodes
            if node.name in self._measured.nodes
        ]

    def as_source(self, load: Level) -> Level:
        """Return the lower of what was measured and what the present pods use plus what no pod accounts for.

        Terminating pods are not present.
        """
        present = [pod for pod in self._cluster.active_pods_on(load.node) if not pod.terminating]
        lower = {name: min(used, self._present(name, used, load.node, present)) for name, used in load.used.items()}
        return Level(load.node, lower)

    def as_destination(self, node: Node) -> Level:
        """Return what a node uses at its peak, of all that is measured, with the pods that cannot be seen yet."""
        amounts = self._measured.peaks[node.name]
        load = Level(node, {name: self._figure(node, name, amounts) for name in {*self._names, *self._known}})
        for pod in self._cluster.active_pods_on(node):
            if self._unseen(pod):
                load.charge({name: amount for name, amount in self.taken(pod).items() if name != PODS})
        return load

    def taken(self, pod: Pod) -> Resources:
        """Return what a pod takes along: what it uses, or else what it requests."""
        amounts = self._usage(pod)
        if amounts is None:
            return {**{name: self._requested(pod, name) for name in self._known}, PODS: 1}
        return {**amounts, PODS: 1}

    def why_stuck(self, pod: Pod) -> Refused | None:
        """Return why a pod is no candidate: just come, too young for the window, or of unknown usage or none."""
        if self._measured.window and self._young(pod):
            age = self._age(pod).total_seconds()
            return Refused(
                "YoungerThanWindow", f"{age:.0f} s old, and figures sum up {self._youth.total_seconds():.0f} s"
            )
        if self._newcomer(pod):
            age = self._age(pod).total_seconds()
            return Refused("Newcomer", f"started {age:.0f} s ago: it may just have been moved")
        if not self.pods_known:
            return None
        amounts = self._usage(pod)
        missing = [name for name in self._names if name != PODS and name not in (amounts or {})]
        if amounts is None or missing:
            return Refused("NoUsage", f"its usage of {', '.join(missing or self._known)} is unknown")
        return None if any(amounts.values()) else Refused("NoUsage", "it uses nothing")

    def _figure(self, node: Node, name: str, amounts: Resources) -> int:
        return self._cluster.used(node).get(PODS, 0) if name == PODS else amounts[name]

    def _present(self, name: str, used: int, node: Node, present: list[Pod]) -> int:
        if name == PODS:
            return len(present)
        if not self.pods_known:
            return used
        rest = max(0, used - self._seen.get(node.name, {}).get(name, 0))
        return rest + sum((self._usage(pod) or {}).get(name, 0) for pod in present)

    def _usage(self, pod: Pod) -> Resources | None:
        """Return what the pod was measured to use; None if it was not, or as another of this name elsewhere."""
        measured = self._measured
        if measured.pod_nodes.get(pod.key, pod.node) != pod.node:
            return None
        return (measured.pods or {}).get(pod.key)

    def _pods_by_node(self) -> dict[str, dict[str, int]]:
        """Return the sums of all pods measured on each node, gone or not."""
        sums: dict[str, dict[str, int]] = {}
        for key, amounts in (self._measured.pods or {}).items():
            if node := self._measured.pod_nodes.get(key) or self._homes.get(key):
                add(sums.setdefault(node, {}), amounts)
        return sums

    def _unseen(self, pod: Pod) -> bool:
        """Tell whether the figures of its node do not show the pod, or not in full."""
        return self._young(pod) and (bool(self._measured.window) or (self.pods_known and self._usage(pod) is None))

    def _young(self, pod: Pod) -> bool:
        return self._age(pod) < self._youth

    def _newcomer(self, pod: Pod) -> bool:
        """Tell whether a pod came lately, and not with the first of its owner's pods, as replacements do.

        A run remembers nothing of the one before; this keeps it from moving one pod again and again.  Where few came
        first nobody can tell: a cycle may have moved so many, and others the rest.
        """
        owner = pod.controller
        if owner is None or self._age(pod) >= self._rest:
            return False
        first = self._first_came[owner.uid]
        return first is None or pod.created - first > _TOGETHER

    def _first_creations(self) -> dict[str, datetime | None]:
        """Return when the first pods of each owner were created; None where one cycle may have moved so few."""
        created: dict[str, list[datetime]] = {}
        for pod in self._cluster.snapshot.pods:
            if owner := pod.controller:
                created.setdefault(owner.uid, []).append(pod.created)
        return {uid: _first_of(times) for uid, times in created.items()}

    def _age(self, pod: Pod) -> timedelta:
        return self._cluster.now - (pod.started or pod.created)

    def _requested(self, pod: Pod, name: str) -> int:
        if name != METRIC_RESOURCE:
            return pod.spec.requests.get(name, 0)
        node = self._cluster.node(pod.node)
        offered = (node.allocatable or node.capacity) if node else {}
        shares = [pod.spec.requests.get(each, 0) / offered[each] for each in (CPU, MEMORY) if offered.get(each)]
        return ceil(max(shares, default=0.0) * 100)


def _first_of(created: list[datetime]) -> datetime | None:
    first = min(created)
    together = sum(each - first <= _TOGETHER for each in created)
    return first if together > ceil(len(created) * _MOVED_AT_ONCE) else None
