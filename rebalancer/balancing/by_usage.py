"""Relief, filling and emptying put together, for strategies that decide on measured usage."""

from collections.abc import Callable, Collection, Sequence

from rebalancer.balancing.candidates import Selection
from rebalancer.balancing.compaction import Compaction, Emptying, NodesInUse, SteeredPlacement
from rebalancer.balancing.destinations import Destinations, simulation_by
from rebalancer.balancing.filling import FIRST_CEILING, LAST_CEILING, Filling
from rebalancer.balancing.relief import Moves, Relief, Worth, furthest_first, staying_over
from rebalancer.balancing.steering.offers import Planning
from rebalancer.balancing.steering.steered import Steered
from rebalancer.balancing.usage import measured_usage_for
from rebalancer.balancing.utilization import Band, Bounds, NodeUtilization, Percentages, offsets, pooled
from rebalancer.balancing.weighing import UsageWeighing
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import METRIC_RESOURCE
from rebalancer.eviction.evict import Evict
from rebalancer.eviction.observation import NONE_OVER, NONE_RECEIVES, TOO_FEW_UNDER
from rebalancer.eviction.verdict import Refused
from rebalancer.policy.usage import UtilizationArgs

#: How full pods may make a node unless a policy says otherwise.
_PACKED = dict.fromkeys(("cpu", "memory", METRIC_RESOURCE), 70.0)


class ByUsage:
    """Moves the pods that a strategy wants by what nodes and pods were measured to use.

    An owner without a PDB loses few of its pods.

    Raises:
        StrategyError: the source has no answer, or does not measure what `thresholds` name.
    """

    def __init__(self, args: UtilizationArgs, cluster: Cluster, evict: Evict, wanted: Callable[[Pod], bool]) -> None:
        self._args = args
        self._cluster = cluster
        self._evict = evict.with_owner_limit()
        self._usage = measured_usage_for(args, cluster, evict)
        self._selection = Selection(cluster, self._evict, self._usage, wanted, args.rest)
        self._pooling = args.metrics_utilization.pools if args.metrics_utilization else None

    def relieve(self, bounds: Bounds, limit: int | None) -> None:
        """Take pods off nodes above target, each up to the limit; in a band around the mean, also fill nodes below."""
        nodes = self._usage.nodes()
        # What is kept empty is about to go: it does not count in the mean either.
        pools, held = pooled(nodes, self._pooling.label) if self._pooling else [], self._cluster.held
        band = bounds.of([each for each in nodes if each.node.name not in held], pooled=bool(pools))
        self._usage.offsets = offsets(pools, band.mean, held) if bounds.deviation else {}
        low, high = band.low, band.high
        peaks = [self._usage.destination(each.node) for each in nodes if self._cluster.receives(each.node)]
        # Destinations are nearly idle, or, in a band, below the mean of some resource.
        under = [peak for peak in peaks if (peak.short_of(band.mean) if bounds.deviation else peak.within(low))]
        least, sources = self._args.number_of_nodes, self._usage.sources()
        few = least > 0 and sum(peak.within(low) for peak in peaks) <= least
        over = furthest_first(sources, high)
        self._selection.spared = {each.node.name: why for each in over if (why := self._passing(each, high))}
        counts = {"nodes": len(sources), "over": len(over), "below" if bounds.deviation else "under": len(under)}
        none_over = not over and not bounds.deviation
        obstacles = ((none_over, NONE_OVER), (not under, NONE_RECEIVES), (few, TOO_FEW_UNDER))
        weighing = UsageWeighing(sources, self._usage.of_pod, low, high, self._cluster.receives)
        with weighing.told(self._cluster, self._evict, counts, obstacles, least):
            if few or not band.mean:  # no node counts
                return
            stay = self._pooling is not None and self._pooling.moves == "within"
            for pool in pools if stay and pools else [nodes]:
                names = {each.node.name for each in pool}
                steer = self._evict.steer if self._usage.pods_known else None
                if steer is not None and simulation_by(self._args, self._cluster):
                    Steered(Planning(self._selection, band, steer, names, limit)).run()
                else:
                    self._relieve(names, (under, peaks, sources), band, limit)

    def _passing(self, node: NodeUtilization, targets: Percentages) -> Refused | None:
        """Return why a node over its targets is left alone: its load does not last, or falls by itself."""
        outlook = self._evict.outlook
        refusal = outlook.not_lasting(node.node, node.bounds(targets)) if outlook else None
        if refusal is None and (refusal := self._usage.falling(node, targets)):
            self._evict.warn(refusal.cause)
        return refusal

    def _relieve(
        self, names: Collection[str], nodes: Sequence[Sequence[NodeUtilization]], band: Band, limit: int | None
    ) -> None:
        """Move pods among the nodes of these names: those that may get pods, all as destinations, and as sources."""
        under, peaks, sources = ([each for each in some if each.node.name in names] for some in nodes)
        if not under:
            return
        evict = self._evict
        destinations = Destinations(
            self._selection,
            simulation_by(self._args, self._cluster),
            under,
            band.above(FIRST_CEILING) if band.deviation else band.high,
            others=[peak for peak in peaks if peak not in under],
            floors=band.floors,
            elsewhere={each.node.name for each in nodes[-1]}.difference(names),
        )
        worth = Worth(evict.outlook, band.floors, band.high, band.high) if self._usage.pods_known else None
        moves = Moves(self._selection, destinations, worth, limit)
        relief = Relief(moves, band.high)
        relief.run(sources)
        if band.deviation:
            # Pods that the first ceilings held back may fill nodes further now; then low nodes are filled.
            if furthest_first(sources, band.high):
                destinations.set_ceilings(band.above(LAST_CEILING))
                relief.run(sources)
            Filling(moves, band).run(sources)
        for over in staying_over(sources, band.high) if self._usage.pods_known else ():
            evict.warn(over)

    def empty(self, ceilings: Percentages, in_use: NodesInUse | None = None) -> None:
        """Empty nodes that are nearly idle, each whole or not at all; with nodes in use onto those, else onto others.

        The ceilings of others are 70 % of what is measured as a rule.
        """
        args, cluster, evict, usage, low = self._args, self._cluster, self._evict, self._usage, self._args.thresholds
        sources = usage.sources()
        under = [source for source in sources if source.within(low)]
        idle = {source.node.name for source in under}
        staying = in_use.nodes if in_use else {each.node.name for each in sources} - idle
        others = [each for each in sources if each.node.name in staying and cluster.receives(each.node)]
        candidates = in_use.candidates(under) if in_use else under
        weighing = UsageWeighing(sources, usage.of_pod, low, {})
        with weighing.while_emptying(cluster, evict, under, candidates, others, args.number_of_nodes) as may_go:
            if not may_go:
                return
            bounds = {**(_PACKED if args.metrics_utilization else {}), **ceilings}
            simulation = simulation_by(args, cluster)
            takers = [each for each in sources if not each.node.unschedulable] if in_use else others
            peaks = [usage.destination(each.node) for each in takers]
            emptied = () if in_use else idle
            destinations = Destinations(self._selection, simulation, peaks, bounds, packed=True, emptied=emptied)
            if in_use is None:
                Emptying(self._selection, destinations, low).run(under)
                return
            steer = evict.steer if simulation else None
            steered = SteeredPlacement(cluster, others, candidates, destinations, bounds, steer) if steer else None
            Compaction(self._selection, destinations, low, in_use, steered).run(candidates)

    def compact(self, ceilings: Percentages, keep_free: Percentages, group_label: str, keep_nodes: int) -> None:
        """Empty nodes onto those that stay in use (see `NodesInUse`)."""
        self.empty(ceilings, NodesInUse(self._cluster, keep_free, group_label, keep_nodes))
