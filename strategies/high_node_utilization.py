"""HighNodeUtilization: take the pods off nodes that are nearly idle, so that an autoscaler can remove those nodes.

A node is underutilized if every resource of `thresholds` is at or below its percentage of what the node has
allocatable; cordoned nodes may be.  The nodes that are neither underutilized nor cordoned are the destinations.
Usage is what active pods request, of cpu, memory, pods and the resources of `thresholds`; with metricsUtilization it
is what a source has measured, of the resources that the source knows, and the number of pods.

Underutilized nodes lose their pods, the emptiest node first (by bytes, in effect) and on each node the cheapest pods
first, until the destinations together are full in some tracked resource.  A pod goes only if it tolerates every taint
of some destination, whatever the effect.

Nothing happens unless more than numberOfNodes nodes are underutilized; nodes without a pod count too.  With the mode
OnlyThresholdingResources only pods go of which a container requests a resource of `thresholds`.  Pods in the
namespaces of `evictableNamespaces.exclude` count as usage but stay.

With metricsUtilization and `selection: relief` a node is emptied whole or not at all, those with the fewest pods first:
every pod on it that is of no DaemonSet, no mirror or static pod and not terminating may go, all of them together, and
some destination takes it by requests, taints and affinity and stays within `destinationThresholds` (70 % of what is
measured, unless given) with its usage at the peak; that node is charged with it.  Of each node that is left alone one
refusal tells which pod keeps it.  An owner without a PDB loses at most a quarter of its pods a cycle, and at least one.

It goes with a scheduler that packs nodes (MostAllocated); others may put the pods back where they were.
"""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, ClassVar, Literal

from rebalancer.api import (
    METRIC_RESOURCE,
    Balance,
    Cluster,
    Emptying,
    Evict,
    Field,
    Figures,
    NodeLoad,
    Pod,
    Relocation,
    Reservations,
    Room,
    Thresholds,
    UtilizationArgs,
    figures_by,
    model_validator,
    node_loads,
    usage_by,
)

ONLY_THRESHOLDING_RESOURCES = "OnlyThresholdingResources"
_CEILINGS = dict.fromkeys(("cpu", "memory", METRIC_RESOURCE), 70.0)


class HighNodeUtilizationArgs(UtilizationArgs):
    """When a node is nearly idle, and which pods leave it."""

    eviction_modes: Annotated[tuple[Literal["OnlyThresholdingResources"], ...], Field(strict=False)] = Field(
        (), description=f"{ONLY_THRESHOLDING_RESOURCES}: only pods that request a resource of thresholds."
    )
    destination_thresholds: Thresholds = Field(
        {}, description="With selection: relief, how full pods may make a node at its peak; 70 unless given."
    )

    @model_validator(mode="after")
    def _destinations_are_chosen(self) -> "HighNodeUtilizationArgs":
        metrics = self.metrics_utilization
        if self.destination_thresholds and (metrics is None or metrics.selection is None):
            raise ValueError("destinationThresholds goes with metricsUtilization and its selection: relief only")
        low, ceilings = self.thresholds, self.destination_thresholds
        if crossed := [name for name in sorted(ceilings) if low.get(name, 0) > ceilings[name]]:
            raise ValueError(f"the thresholds of {', '.join(crossed)} are greater than their destinationThresholds")
        return self


class HighNodeUtilization(Balance[HighNodeUtilizationArgs]):
    """Empty idle nodes."""

    name = "HighNodeUtilization"
    Args = HighNodeUtilizationArgs
    example: ClassVar[Mapping[str, object]] = {"thresholds": {"cpu": 20, "memory": 20}}

    def run(self, cluster: Cluster, evict: Evict) -> None:
        """Evict pods from underutilized nodes, the emptiest first."""
        if figures := figures_by(self.args, cluster, evict):
            self._empty(cluster, evict, figures)
        else:
            self._relocate(cluster, evict)

    def _empty(self, cluster: Cluster, evict: Evict, figures: Figures) -> None:
        args, loads = self.args, [figures.as_source(load) for load in figures.loads()]
        under = [load for load in loads if load.within(args.thresholds)]
        idle = {load.node.name for load in under}
        others = [load.node for load in loads if load.node.name not in idle and not load.node.unschedulable]
        if len(under) <= max(args.number_of_nodes, 0) or not others:
            return
        ceilings = {**_CEILINGS, **args.destination_thresholds}
        places = Reservations(cluster, map(figures.as_destination, others), ceilings, packed=True)
        Emptying(cluster, evict.sparing_owners(), figures, places, args.thresholds, self._wanted).run(under)

    def _relocate(self, cluster: Cluster, evict: Evict) -> None:
        thresholds = self.args.thresholds
        usage = usage_by(self.args, cluster, evict)
        loads = node_loads(cluster, usage)
        under = [load for load in loads if load.within(thresholds)]
        idle = {load.node.name for load in under}
        peaks = node_loads(cluster, usage.at_peak)
        destinations = [load for load in peaks if load.node.name not in idle and not load.node.unschedulable]
        if len(under) <= max(self.args.number_of_nodes, 0) or not destinations:
            return
        relocation = Relocation(cluster, evict, usage, Room(destinations, {}))
        for source in sorted(under, key=lambda load: (load.total, load.node.name)):
            relocation.drain(source, because=partial(self._because, source), wanted=self._wanted)

    def _because(self, source: NodeLoad) -> str:
        return f"{source.node.name} at {source.slack(self.args.thresholds)}"

    def _wanted(self, pod: Pod) -> bool:
        if pod.namespace in self.args.evictable_namespaces.exclude:
            return False
        only_thresholding = ONLY_THRESHOLDING_RESOURCES in self.args.eviction_modes
        return not only_thresholding or not pod.spec.requested.isdisjoint(self.args.thresholds)
