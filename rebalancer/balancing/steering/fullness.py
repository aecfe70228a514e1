"""How full nodes are as a plan goes on: what leaves is taken off, and what is expected to come is charged."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

import numpy as np

from rebalancer.balancing.measured_usage import MeasuredUsage
from rebalancer.balancing.steering.goal import Fill, Fills
from rebalancer.balancing.utilization import NodeUtilization, Percentages
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import CONTENTION, Resources, arriving


class Fullness:
    """The nodes of known usage, twice: as sources, and with their peaks as destinations.

    It follows the cluster in the present scope.  A pod that comes is charged to both.  One that goes is taken off the
    source, and off the peak if the figures are of one moment.  Over a time window it may not have been this pod that
    made the peak; so there the peak stays, to be on the safe side.
    Pods are moved among the nodes that are compared, by the resources of the goal.
    """

    def __init__(self, cluster: Cluster, usage: MeasuredUsage, names: Sequence[str], compared: Collection[str]) -> None:
        self._usage = usage
        self._names = tuple(names)
        self.sources: dict[str, NodeUtilization] = {
            each.node.name: each for each in usage.sources() if each.node.name in compared
        }
        self.peaks = {name: usage.destination(each.node) for name, each in self.sources.items()}
        self._fills: dict[str, Fill] = {}
        self._peak_fills: dict[str, Fill] = {}
        self._used: dict[Pod, list[int]] = {}
        self._offered = {
            name: [each.offered.get(resource, 0) for resource in self._names] for name, each in self.sources.items()
        }
        cluster.follow(self)

    def fill(self, name: str) -> Fill:
        """Return how full a node is as a source."""
        return self._kept(self._fills, self.sources, name)

    def peak(self, name: str) -> Fill:
        """Return how full a node is as a destination."""
        return self._kept(self._peak_fills, self.peaks, name)

    def _kept(self, fills: dict[str, Fill], nodes: Mapping[str, NodeUtilization], name: str) -> Fill:
        known = fills.get(name)
        if known is None:
            known = fills[name] = tuple([nodes[name].level(each) for each in self._names])
        return known

    def fills(self, names: Iterable[str]) -> Fills:
        """Return how full nodes are as sources."""
        return np.array([self.fill(name) for name in names]).T

    def peak_fills(self, names: Iterable[str]) -> Fills:
        """Return how full nodes are as destinations."""
        return np.array([self.peak(name) for name in names]).T

    def offered(self, names: Iterable[str]) -> Fills:
        """Return what nodes have of each resource."""
        return np.array([self._offered[name] for name in names], dtype=np.float64).T

    def amounts(self, pods: Sequence[Pod]) -> Fills:
        """Return what pods use of each resource."""
        for pod in [each for each in pods if each not in self._used]:
            usage = self._usage.of_pod(pod)
            self._used[pod] = [usage.get(name, 0) for name in self._names]
        return np.array([self._used[pod] for pod in pods], dtype=np.float64).T

    def arriving(self, amounts: Fills) -> Fills:
        """Return what pods that use these amounts add to a node to which they come (see `resources.arriving`)."""
        return np.array([each * (name != CONTENTION) for name, each in zip(self._names, amounts, strict=True)])

    def has_room(
        self, name: str, pods: Iterable[Pod], ceilings: Percentages, spare: float = 1.0, there: Iterable[Pod] = ()
    ) -> bool:
        """Return whether `spare` times these pods' usage passes no ceiling of a node, in any resource measured.

        Pods that are there already need the rest of it only: their usage is charged once.
        """
        amounts: dict[str, float] = {}
        for times, group in ((spare, pods), (spare - 1, there)):
            for pod in group:
                for each, amount in arriving(self._usage.of_pod(pod)).items():
                    amounts[each] = amounts.get(each, 0.0) + times * amount
        together: Resources = {each: round(amount) for each, amount in amounts.items()}
        return self.peaks[name].passed(together, ceilings) is None

    def exchanged(self, name: str, fewer: Iterable[Pod], more: Iterable[Pod]) -> AbstractContextManager[None]:
        """Leave the usage of some pods out of a node's peak within the block, and add that of others."""
        of_pod = self._usage.of_pod
        return self.peaks[name].exchanged(*([arriving(of_pod(pod)) for pod in pods] for pods in (fewer, more)))

    def left(self, pod: Pod, sign: int) -> None:
        """Note that a pod has gone, or is back; the sources themselves follow, too."""
        self._fills.pop(pod.node, None)
        if self._usage.of_one_moment and pod.active and pod.node in self.peaks:
            self.peaks[pod.node].charge(self._usage.of_pod(pod), -sign)
            self._peak_fills.pop(pod.node, None)

    def came(self, pod: Pod, node: Node, sign: int) -> None:
        """Charge a pod that is expected on a node, or take it off."""
        if node.name in self.sources:
            amounts = arriving(self._usage.of_pod(pod))
            self.sources[node.name].charge(amounts, sign)
            self.peaks[node.name].charge(amounts, sign)
            self._fills.pop(node.name, None)
            self._peak_fills.pop(node.name, None)


def percents(amounts: Fills, offered: Fills) -> Fills:
    """Return amounts in percent of what nodes have; infinite for a resource that a node does not have."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(amounts > 0, amounts / offered * 100, 0.0)
