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

With metricsUtilization and `selection: relief` the fewest moves do it (docs/relief.md explains them by an example):

- The node furthest above its targets goes first, in points summed over the resources above them.
- Of the cheapest pods the one goes that cures the excess with the least left over, or, if none does, the one that
  leaves the least.  Pods of Jobs are last among their like.  A pod that takes less than a tenth of the first excess
  without curing it stays, unless there are too many pods: then each is one of them.
- A pod goes only if some underutilized node takes it by requests, taints and affinity, and stays within its targets
  with its usage at the peak.  The node where the pod would land is charged with it.
- A pod stays if the scheduler would likely put it back, or on a node that it lifts above target (unless, with
  useDeviationThresholds, it fills that node more in another resource that is low there).
- An owner without a PDB loses at most a quarter of its pods a cycle, and at least one.
- With useDeviationThresholds destinations are all nodes below the mean of some resource.  When nodes above the band
  have given what they may, nodes above the mean give to those below the band, what brings most first.

With `pools: {label: node.kubernetes.io/instance-type}` in metricsUtilization, the nodes of each value of the label have
a mean of their own, and pods stay among them; with `moves: across` they may go to nodes of other pools.

Nothing happens unless more than numberOfNodes nodes are underutilized.  `evictionLimits.node` is the most evictions
per node.  Pods in the namespaces of `evictableNamespaces.exclude` count as usage but stay.
"""

from collections.abc import Mapping
from typing import ClassVar

from rebalancer import api


class EvictionLimits(api.Part):
    """The most evictions of one run of this strategy."""

    node: api.Count | None = api.Field(None, description="The most evictions from each node.")


class LowNodeUtilizationArgs(api.UtilizationArgs):
    """When a node is too full, and when it is nearly idle."""

    target_thresholds: api.Thresholds = api.Field(
        {}, validate_default=True, description="A node is overutilized if any of these resources is fuller."
    )
    use_deviation_thresholds: bool = api.Field(
        False, description="Percentages are distances from the mean of all nodes."
    )
    eviction_limits: EvictionLimits = api.Field(EvictionLimits(), description="The most evictions.")

    @api.model_validator(mode="after")
    def _same_resources(self) -> "LowNodeUtilizationArgs":
        low, high = self.thresholds, self.target_thresholds
        if low.keys() != high.keys():
            names = ", ".join(sorted(low.keys() ^ high.keys()))
            raise ValueError(f"thresholds and targetThresholds must name the same resources; only one has {names}")
        crossed = [name for name in sorted(low) if low[name] > high[name]]
        if crossed and not self.use_deviation_thresholds:
            raise ValueError(f"the thresholds of {', '.join(crossed)} are greater than their targetThresholds")
        if "contention" in low and self.use_deviation_thresholds:
            raise ValueError("contention has no mean worth keeping to: it does not go with useDeviationThresholds")
        metrics = self.metrics_utilization
        across = metrics is not None and metrics.pools is not None and metrics.pools.moves == "across"
        if across and not self.use_deviation_thresholds:
            raise ValueError(
                "pools with moves: across does nothing where thresholds are not distances from a mean: leave it out, "
                "or set useDeviationThresholds: true"
            )
        return self


class LowNodeUtilization(api.Balance[LowNodeUtilizationArgs]):
    """Move pods from full nodes to idle ones."""

    name = "LowNodeUtilization"
    Args = LowNodeUtilizationArgs
    example: ClassVar[Mapping[str, object]] = {
        "thresholds": {"cpu": 20, "memory": 20},
        "targetThresholds": {"cpu": 50, "memory": 60},
    }

    def run(self, cluster: api.Cluster, evict: api.Evict) -> None:
        """Evict pods from overutilized nodes, the fullest first."""
        args = self.args
        bounds = api.Bounds(args.thresholds, args.target_thresholds, args.use_deviation_thresholds)
        limit = args.eviction_limits.node
        if args.relief:
            api.moves_by_usage(args, cluster, evict, self._wanted).relieve(bounds, limit)
        else:
            usage = api.usage_for(args, cluster, evict)
            api.Relocation(cluster, evict, usage, self._wanted, limit).relieve(bounds, args.number_of_nodes)

    def _wanted(self, pod: api.Pod) -> bool:
        return pod.namespace not in self.args.evictable_namespaces.exclude
