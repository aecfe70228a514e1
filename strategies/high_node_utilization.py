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

- Pods of DaemonSets, mirror, static and terminating pods do not count.  Every other pod on the node must be allowed to
  go, all of them together.
- For each of them some destination takes it by requests, taints and affinity, and stays within `destinationThresholds`
  (70 % of what is measured, unless given) with its usage at the peak.  That node is charged with the pod.
- For each node that is left alone one refusal tells which pod keeps it.
- An owner without a PDB loses at most a quarter of its pods a cycle, and at least one.

With `selection: compaction` a node is emptied whole or not at all too, by measured usage or else by requests, and all
nodes may be underutilized (docs/compaction.md):

- Of the nodes that an autoscaler could remove those with the fewest pods are emptied first.  These are nodes with the
  label `nodeGroups.label`, if it is given, and without an annotation that keeps them.
- A pod that must stay, or whose annotation holds its node, keeps all others there.
- Pods go to nodes in use only, within `destinationThresholds` (where requests decide, all that is there unless given),
  and wherever the scheduler may put them.  With steering the nodes to be emptied are avoided.
- It ends where `keepFree` would not be free any more on the nodes in use, or where a group has no more than
  `nodeGroups.keep` of them.

This strategy goes with a scheduler that packs nodes (MostAllocated).  Others may put the pods back where they were,
unless replacements are steered.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from rebalancer import api

ONLY_THRESHOLDING_RESOURCES = "OnlyThresholdingResources"


class NodeGroups(api.Part):
    """Which nodes an autoscaler may remove, and which of them it would keep."""

    label: str = api.Field(min_length=1, description="Nodes with this label are of a group; others are not emptied.")
    keep: api.Count = api.Field(0, description="So many nodes of each group stay in use.")


class HighNodeUtilizationArgs(api.UtilizationArgs):
    """When a node is nearly idle, and which pods leave it."""

    eviction_modes: Annotated[tuple[Literal["OnlyThresholdingResources"], ...], api.Field(strict=False)] = api.Field(
        (), description=f"{ONLY_THRESHOLDING_RESOURCES}: only pods that request a resource of thresholds."
    )
    destination_thresholds: api.Thresholds = api.Field(
        {},
        description="With selection: relief or compaction, how full pods may make a node at its peak; 70 unless given, "
        "100 where requests decide.",
    )
    selection: Literal["compaction"] | None = api.Field(
        None, description="compaction: whole nodes, also where all are underutilized; absent: the descheduler's rules."
    )
    keep_free: api.Thresholds = api.Field(
        {}, description="With selection: compaction, what percentage of the nodes in use stays unrequested."
    )
    node_groups: NodeGroups | None = api.Field(
        None, description="With selection: compaction, which nodes an autoscaler may remove; all unless given."
    )

    @property
    def compacts(self) -> bool:
        """Whether nodes are emptied whole, so that they can be held."""
        return self.selection is not None

    @property
    def asks_scheduler(self) -> bool:
        """Whether moves depend on where the scheduler would put pods."""
        metrics = self.metrics_utilization
        compaction = self.selection is not None and (metrics is None or metrics.scheduler != "unknown")
        return compaction or super().asks_scheduler

    @api.model_validator(mode="after")
    def _one_selection(self) -> "HighNodeUtilizationArgs":
        if self.selection is not None and self.relief:
            raise ValueError("selection: compaction and metricsUtilization.selection: relief exclude each other")
        if self.selection is None and (self.keep_free or self.node_groups):
            raise ValueError("keepFree and nodeGroups go with selection: compaction only")
        if self.metrics_utilization is not None and self.metrics_utilization.pools:
            raise ValueError("pools goes with LowNodeUtilization only; here nodeGroups tells nodes apart")
        if self.destination_thresholds and not (self.relief or self.selection):
            raise ValueError(
                "destinationThresholds goes with metricsUtilization and its selection: relief only, "
                "or with selection: compaction"
            )
        low, ceilings = self.thresholds, self.destination_thresholds
        if crossed := [name for name in sorted(ceilings) if low.get(name, 0) > ceilings[name]]:
            raise ValueError(f"the thresholds of {', '.join(crossed)} are greater than their destinationThresholds")
        return self


class HighNodeUtilization(api.Balance[HighNodeUtilizationArgs]):
    """Empty idle nodes."""

    name = "HighNodeUtilization"
    Args = HighNodeUtilizationArgs
    example: ClassVar[Mapping[str, object]] = {"thresholds": {"cpu": 20, "memory": 20}}

    def run(self, cluster: api.Cluster, evict: api.Evict) -> None:
        """Evict pods from underutilized nodes, the emptiest first."""
        args, groups = self.args, self.args.node_groups
        if not (args.selection or args.relief):
            usage = api.usage_for(args, cluster, evict)
            api.Relocation(cluster, evict, usage, self._wanted).empty(args.thresholds, args.number_of_nodes)
            return
        moves = api.moves_by_usage(args, cluster, evict, self._wanted)
        if args.selection:
            label, keep = (groups.label, groups.keep) if groups else ("", 0)
            moves.compact(args.destination_thresholds, args.keep_free, label, keep)
        else:
            moves.empty(args.destination_thresholds)

    def _wanted(self, pod: api.Pod) -> bool:
        if pod.namespace in self.args.evictable_namespaces.exclude:
            return False
        only_thresholding = ONLY_THRESHOLDING_RESOURCES in self.args.eviction_modes
        return not only_thresholding or not pod.spec.requested.isdisjoint(self.args.thresholds)
