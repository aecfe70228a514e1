"""LowNodeUtilization: move pods from nodes that are too full to nodes that are nearly idle.

A node is underutilized if every resource of `thresholds` is at or below its percentage, and overutilized if any
resource of `targetThresholds` is above its own; a cordoned node may be over, but never under.  Percentages are shares
of what the node has allocatable.  With useDeviationThresholds they are distances from the mean of all nodes, below it
and above it.

Usage is what active pods request, of cpu, memory, pods and the resources of `thresholds`; with metricsUtilization it
is what a source has measured, of the resources that the source knows, and the number of pods.  A pod whose usage the
source does not know stays.  Where it knows nothing of pods (the reference's form of Prometheus), one pod leaves each
overutilized node, or as many as `evictionLimits.node` says.

Overutilized nodes lose pods, the fullest node first (by bytes, in effect) and on each node the cheapest pods first,
until the node is within its targets or the underutilized nodes together have used up the room within theirs in some
tracked resource.  A resource without a target counts up to the whole capacity.  A pod goes only if it tolerates every
taint of some underutilized node, whatever the effect.

Nothing happens unless more than numberOfNodes nodes are underutilized.  `evictionLimits.node` is the most evictions
per node.  Pods in the namespaces of `evictableNamespaces.exclude` count as usage but stay.
"""

from functools import partial

from rebalancer.api import (
    Balance,
    Cluster,
    Count,
    Evict,
    Field,
    NodeLoad,
    Part,
    Percentages,
    Relocation,
    Room,
    Thresholds,
    Usage,
    UtilizationArgs,
    around_mean,
    model_validator,
    node_loads,
)


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
        args, usage = self.args, self.usage(cluster, evict)
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
                wanted=lambda pod: pod.namespace not in args.evictable_namespaces.exclude,
                limit=args.eviction_limits.node,
            )

    def usage(self, cluster: Cluster, evict: Evict) -> Usage:
        """Return what nodes and pods use, by the source that the arguments name.

        Raises:
            StrategyError: it has no answer.
        """
        return self.args.usage(cluster, evict)

    def _bounds(self, loads: list[NodeLoad]) -> tuple[Percentages, Percentages]:
        low, high = self.args.thresholds, self.args.target_thresholds
        return around_mean(loads, low, high) if self.args.use_deviation_thresholds else (low, high)


def _because(source: NodeLoad, high: Percentages) -> str:
    excess = source.excess(high)
    return f"{source.node.name} at {excess}" if excess else ""
