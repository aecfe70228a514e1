"""LowNodeUtilization: move pods from nodes that are too full to nodes that are nearly idle.

A node is underutilized if every resource of `thresholds` is at or below its percentage, and overutilized if any
resource of `targetThresholds` is above its own; a cordoned node may be over, but never under.  Percentages are shares
of what the node has allocatable.  With useDeviationThresholds they are distances from the mean of all nodes, below it
and above it.

Usage is what active pods request, of cpu, memory, pods and the resources of `thresholds`; with metricsUtilization it
is what a source has measured, of the resources that the source knows, and the number of pods.  A pod whose usage the
source does not know stays.  Where it knows nothing of pods (the descheduler's form of Prometheus), one pod leaves each
overutilized node, or as many as `evictionLimits.node` says.

Overutilized nodes lose pods, the fullest node first (by bytes, in effect) and on each node the cheapest pods first,
until the node is within its targets or the underutilized nodes together have used up the room within theirs in some
tracked resource.  A resource without a target counts up to the whole capacity.  A pod goes only if it tolerates every
taint of some underutilized node, whatever the effect.

With metricsUtilization and `selection: relief` the fewest moves do it.  The node furthest above its targets goes first,
in points summed over the resources above them.  Of the cheapest pods the one goes that cures the excess with the least
left over, or, if none does, the one that leaves the least; pods of Jobs last among their like; none that takes less
than a tenth of the first excess without curing it.  And a pod goes only if some underutilized node takes it by
requests, taints and affinity, and stays within its targets with its usage at the peak; that node is charged with it.
An owner without a PDB loses at most a quarter of its pods a cycle, and at least one.  With useDeviationThresholds, once
no node is above its targets, nodes above the mean give to those still low, down to the mean.

Nothing happens unless more than numberOfNodes nodes are underutilized.  `evictionLimits.node` is the most evictions
per node.  Pods in the namespaces of `evictableNamespaces.exclude` count as usage but stay.
"""

from collections.abc import Sequence
from functools import partial

from rebalancer.api import (
    Balance,
    Cluster,
    Count,
    Evict,
    Field,
    Figures,
    NodeLoad,
    Part,
    Percentages,
    Pod,
    Relief,
    Relocation,
    Reservations,
    Room,
    Thresholds,
    UtilizationArgs,
    around_mean,
    means,
    model_validator,
    node_loads,
)

#: How far low nodes are brought towards the mean: at the very edge of the band they would soon be outside again.
_INTO_THE_BAND = 0.5


class EvictionLimits(Part):
    """The most evictions of one run of this strategy."""

    node: Count | None = Field(None, description="The most evictions from each node.")


class LowNodeUtilizationArgs(UtilizationArgs):
    """When a node is too full, and when it is nearly idle."""

    target_thresholds: Thresholds = Field(
        {}, validate_default=True, description="A node is overutilized if any of these resources is fuller."
    )
    use_deviation_thresholds: bool = Field(False, description="Percentages are distances from the mean of all nodes.")
    eviction_limits: EvictionLimits = Field(EvictionLimits(), description="The most evictions.")

    @model_validator(mode="after")
    def _same_resources(self) -> "LowNodeUtilizationArgs":
        low, high = self.thresholds, self.target_thresholds
        if low.keys() != high.keys():
            names = ", ".join(sorted(low.keys() ^ high.keys()))
            raise ValueError(f"thresholds and targetThresholds must name the same resources; only one has {names}")
        crossed = [name for name in sorted(low) if low[name] > high[name]]
        if crossed and not self.use_deviation_thresholds:
            raise ValueError(f"the thresholds of {', '.join(crossed)} are greater than their targetThresholds")
        return self


class LowNodeUtilization(Balance[LowNodeUtilizationArgs]):
    """Move pods from full nodes to idle ones."""

    name = "LowNodeUtilization"
    Args = LowNodeUtilizationArgs

    def run(self, cluster: Cluster, evict: Evict) -> None:
        """Evict pods from overutilized nodes, the fullest first."""
        if figures := self.args.figures(cluster, evict):
            self._relieve(cluster, evict, figures)
        else:
            self._relocate(cluster, evict)

    def _relieve(self, cluster: Cluster, evict: Evict, figures: Figures) -> None:
        args, loads = self.args, figures.loads()
        low, high = self._bounds(loads)
        sources = [figures.as_source(load) for load in loads]
        peaks = [figures.as_destination(load.node) for load in loads if not load.node.unschedulable]
        under = [peak for peak in peaks if peak.within(low)]
        if len(under) <= max(args.number_of_nodes, 0):
            return
        places = Reservations(cluster, under, high)
        limit = args.eviction_limits.node
        relief = Relief(cluster, evict.sparing_owners(), figures, places, high, self._wanted, limit)
        relief.run(sources)
        if args.use_deviation_thresholds:
            centre = means(loads, low)
            relief.fill(
                sources, {name: low[name] + (centre[name] - low[name]) * _INTO_THE_BAND for name in low}, centre
            )

    def _relocate(self, cluster: Cluster, evict: Evict) -> None:
        args, usage = self.args, self.args.usage(cluster, evict)
        loads = node_loads(cluster, usage)
        low, high = self._bounds(loads)
        peaks = node_loads(cluster, usage.at_peak)
        under = [load for load in peaks if not load.node.unschedulable and load.within(low)]
        over = [load for load in loads if load.exceeds(high)]
        if len(under) <= max(args.number_of_nodes, 0):
            return
        relocation = Relocation(cluster, evict, usage, Room(under, high))
        for source in sorted(over, key=lambda load: (-load.total, load.node.name)):
            relocation.drain(
                source,
                because=partial(_because, source, high),
                wanted=self._wanted,
                limit=args.eviction_limits.node,
            )

    def _wanted(self, pod: Pod) -> bool:
        return pod.namespace not in self.args.evictable_namespaces.exclude

    def _bounds(self, loads: Sequence[NodeLoad]) -> tuple[Percentages, Percentages]:
        low, high = self.args.thresholds, self.args.target_thresholds
        return around_mean(loads, low, high) if self.args.use_deviation_thresholds else (low, high)


def _because(source: NodeLoad, high: Percentages) -> str:
    excess = source.excess(high)
    return f"{source.node.name} at {excess}" if excess else ""
