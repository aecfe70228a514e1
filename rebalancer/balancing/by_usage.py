"""Relief, filling and emptying put together, for strategies that decide on measured usage."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

from rebalancer.balancing.band import Band, Bounds, PoolNodes, band_of, offsets, pooled
from rebalancer.balancing.candidates import Selection
from rebalancer.balancing.compaction import Compaction, NodesInUse
from rebalancer.balancing.destinations import Destinations, placements_by
from rebalancer.balancing.emptying import Emptying
from rebalancer.balancing.filling import FIRST_CEILING, LAST_CEILING, Filling
from rebalancer.balancing.measured_usage import measured_usage_for
from rebalancer.balancing.moves import Moves, Worth
from rebalancer.balancing.placement_choice import Replicas, SteeredPlacement, UnsteeredPlacement, destination_order
from rebalancer.balancing.relief import Relief, furthest_first, staying_over
from rebalancer.balancing.steering.draft import Planning
from rebalancer.balancing.steering.foresight import Foresight
from rebalancer.balancing.steering.fullness import Fullness
from rebalancer.balancing.steering.goal import MARGIN, Goal
from rebalancer.balancing.steering.offers import Offers
from rebalancer.balancing.steering.pool import Pool
from rebalancer.balancing.steering.steered import Steered
from rebalancer.balancing.steering.waves import Waves
from rebalancer.balancing.steering.zones import ZoneSpread
from rebalancer.balancing.utilization import NodeUtilization, Percentages
from rebalancer.balancing.weighing import UsageWeighing, told
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import METRIC_RESOURCE
from rebalancer.eviction.evict import Evict
from rebalancer.eviction.observation import NONE_OVER, NONE_RECEIVES, NONE_UNDER, TOO_FEW_UNDER
from rebalancer.eviction.steering import Steer
from rebalancer.eviction.verdict import Refused
from rebalancer.policy.usage import UtilizationArgs

#: How full pods may make a node unless a policy says otherwise.
_PACKED = dict.fromkeys(("cpu", "memory", METRIC_RESOURCE), 70.0)


class ByUsage:
    """Moves pods by what nodes and pods were measured to use.

    Args:
        args: the arguments that strategies on utilization share.
        cluster: the cluster.
        evict: whom to ask for evictions; an owner without a PDB loses few of its pods.
        wanted: returns whether the strategy may move a pod.

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
        """Take pods off nodes above target; where bounds are distances from the mean, also fill nodes below it.

        Args:
            bounds: when nodes are nearly idle and too full.
            limit: the most evictions from each node.

        Raises:
            CycleOver: see `Evict`.
        """
        nodes = self._usage.nodes()
        # What is kept empty is about to go: it does not count in the mean either.
        pools, held = pooled(nodes, self._pooling.label) if self._pooling else [], self._cluster.held
        band = band_of(bounds, [each for each in nodes if each.node.name not in held], pooled=bool(pools))
        self._usage.offsets = offsets(pools, band.mean, held) if bounds.deviation else {}
        low, high = band.low, band.high
        peaks = [self._usage.destination(each.node) for each in nodes if self._cluster.receives(each.node)]
        # Destinations are nearly idle, or, in a band, below the mean of some resource.
        under = [peak for peak in peaks if (peak.lacks(band.mean) if bounds.deviation else peak.within(low))]
        few, sources = self._too_few(peaks, low), self._usage.sources()
        over = furthest_first(sources, high)
        self._selection.spare({each.node.name: refusal for each in over if (refusal := self._passing(each, high))})
        counts = {"nodes": len(sources), "over": len(over), "below" if bounds.deviation else "under": len(under)}
        obstacles = (
            (not over and not bounds.deviation, NONE_OVER),
            (not under, NONE_RECEIVES),
            (few, TOO_FEW_UNDER),
        )
        weighing = UsageWeighing(sources, self._usage.of_pod, low, high)
        with told(weighing, self._cluster, self._evict, counts, obstacles, self._args.number_of_nodes):
            if few:
                return
            for pool in self._compared(pools) or [{each.node.name for each in nodes}]:
                self._even_out(PoolNodes(pool, under, peaks, sources), band, limit)

    def _passing(self, node: NodeUtilization, targets: Percentages) -> Refused | None:
        """Return why a node over its targets is left alone: its load does not last, or falls by itself."""
        outlook = self._evict.outlook
        refusal = outlook.passing(node.node, node.bounds(targets)) if outlook else None
        if refusal is None and (refusal := self._usage.falling(node, targets)):
            self._evict.warn(refusal.cause)
        return refusal

    def _even_out(self, group: PoolNodes, band: Band, limit: int | None) -> None:
        """Move pods among these nodes."""
        steer = self._evict.steer
        if steer is not None and self._usage.pods_known and placements_by(self._args, self._cluster, self._evict):
            self._steer(steer, group.names, band, limit)
        elif group.under:
            self._relieve(group, band, limit)

    def _compared(self, pools: Iterable[Iterable[NodeUtilization]]) -> list[set[str]]:
        """Return the names of nodes among which pods may move, pool by pool; nothing where that is among all."""
        stay = self._pooling is not None and self._pooling.moves == "within"
        return [{each.node.name for each in pool} for pool in pools] if stay else []

    def _steer(self, steer: Steer, names: Collection[str], band: Band, limit: int | None) -> None:
        cluster, evict = self._cluster, self._evict
        goal = Goal.of(band, MARGIN * steer.min_gain)
        fullness = Fullness(cluster, self._usage, goal.names, names)
        pool = Pool(cluster, self._selection, fullness, band.high, limit)
        inner = dict(zip(goal.names, goal.inner_high, strict=True))
        worth = Worth(evict.outlook, band.floors, band.high, inner)
        offers, foresight = Offers(goal, fullness, steer.min_gain, worth), Foresight(cluster, steer.keys)
        planning = Planning(cluster, evict, goal, fullness, pool, offers, foresight, band.high, ZoneSpread(cluster))
        Steered(planning, steer, Waves(planning), band.mean).run()

    def _relieve(self, group: PoolNodes, band: Band, limit: int | None) -> None:
        destinations, sources, evict = self._destinations(group, band), group.sources, self._evict
        worth = Worth(evict.outlook, band.floors, band.high, band.high) if self._usage.pods_known else None
        moves = Moves(self._cluster, evict, self._selection, destinations, worth, limit)
        relief = Relief(moves, band.high)
        relief.run(sources)
        if band.deviation:
            # Pods that the first ceilings held back may fill nodes further now; then low nodes are filled.
            if furthest_first(sources, band.high):
                destinations.limit(band.above(LAST_CEILING))
                relief.run(sources)
            Filling(moves, destinations, band).run(sources)
        for over in staying_over(sources, band.high) if self._usage.pods_known else ():
            evict.warn(over)

    def empty(self, ceilings: Percentages) -> None:
        """Empty nodes that are nearly idle, each as a whole or not at all.

        Args:
            ceilings: how full pods may make the other nodes, where that is not 70 %.

        Raises:
            CycleOver: see `Evict`.
        """
        args, sources = self._args, self._usage.sources()
        under = [source for source in sources if source.within(args.thresholds)]
        idle = {source.node.name for source in under}
        others = [each for each in sources if each.node.name not in idle and self._cluster.receives(each.node)]
        with self._emptying(sources, under, under, others) as may_go:
            if not may_go:
                return
            destinations = Destinations(
                self._cluster,
                [self._usage.destination(each.node) for each in others],
                {**_PACKED, **ceilings},
                self._usage.of_pod,
                packed=True,
                placements=placements_by(self._args, self._cluster, self._evict),
                emptied=idle,
            )
            Emptying(self._cluster, self._evict, self._usage, self._selection, destinations, args.thresholds).run(under)

    def compact(self, ceilings: Percentages, keep_free: Percentages, group_label: str, keep_nodes: int) -> None:
        """Empty nodes, each as a whole or not at all, onto the nodes that stay in use (see `compaction`).

        Args:
            ceilings: how full pods may make nodes, where that is not 70 % of what is measured, or 100 % of what is
                requested.
            keep_free: by resource, the percentage of the nodes in use that no pod may request.
            group_label: the label of nodes that an autoscaler may remove; empty: all may be removed.
            keep_nodes: how many nodes of each group stay in use.

        Raises:
            CycleOver: see `Evict`.
        """
        args, cluster, evict, usage, low = self._args, self._cluster, self._evict, self._usage, self._args.thresholds
        sources = usage.sources()
        in_use = NodesInUse(cluster, keep_free, group_label, keep_nodes)
        under = [source for source in sources if source.within(low)]
        candidates = in_use.candidates(under)
        open_nodes = [each for each in sources if each.node.name in in_use and cluster.receives(each.node)]
        with self._emptying(sources, under, candidates, open_nodes) as may_go:
            if not may_go:
                return
            bounds = {**(_PACKED if args.metrics_utilization else {}), **ceilings}
            placements = placements_by(args, cluster, evict)
            peaks = [usage.destination(each.node) for each in sources if not each.node.unschedulable]
            destinations = Destinations(cluster, peaks, bounds, usage.of_pod, packed=True, placements=placements)
            # Without steering, evictions are carried out without marks, and the scheduler places replacements.
            steer = Steer(0.0, ("", ""))
            choices: SteeredPlacement | UnsteeredPlacement = UnsteeredPlacement()
            if evict.steer is not None and placements is not None:
                steer, foresight = evict.steer, Foresight(cluster, evict.steer.keys)
                order = destination_order(open_nodes, candidates)
                choices = SteeredPlacement(cluster.nodes, order, destinations, bounds, foresight, Replicas(cluster))
            parts = (usage, self._selection, destinations, in_use, choices, low)
            Compaction(cluster, evict, steer, *parts).run(candidates)

    @contextmanager
    def _emptying(
        self,
        sources: Sequence[NodeUtilization],
        under: Sequence[NodeUtilization],
        candidates: Sequence[NodeUtilization],
        open_nodes: Sequence[NodeUtilization],
    ) -> Iterator[bool]:
        """Report what was weighed to empty nodes (see `told`), and yield whether enough are idle and some receive."""
        args = self._args
        few = len(under) <= max(args.number_of_nodes, 0)
        counts = {"nodes": len(sources), "under": len(under), "receivers": len(open_nodes)}
        obstacles = ((not candidates, NONE_UNDER), (few, TOO_FEW_UNDER), (not open_nodes, NONE_RECEIVES))
        weighing = UsageWeighing(sources, self._usage.of_pod, args.thresholds, {}, cordoned=True)
        with told(weighing, self._cluster, self._evict, counts, obstacles, args.number_of_nodes):
            yield not few and bool(open_nodes)

    def _destinations(self, group: PoolNodes, band: Band) -> Destinations:
        return Destinations(
            self._cluster,
            group.under,
            band.above(FIRST_CEILING) if band.deviation else band.high,
            self._usage.of_pod,
            others=[peak for peak in group.peaks if peak not in group.under],
            placements=placements_by(self._args, self._cluster, self._evict),
            floors=band.floors,
            elsewhere=group.elsewhere,
        )

    def _too_few(self, peaks: Sequence[NodeUtilization], low: Percentages) -> bool:
        least = self._args.number_of_nodes
        return least > 0 and sum(peak.within(low) for peak in peaks) <= least
