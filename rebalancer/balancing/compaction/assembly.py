"""Compaction put together, with what the report shows of it."""

from collections.abc import Iterable, Sequence

from rebalancer.balancing.candidates import Selection
from rebalancer.balancing.compaction.compaction import Compaction
from rebalancer.balancing.compaction.demands import CompactionDemands, NodesInUse
from rebalancer.balancing.compaction.replicas import Replicas
from rebalancer.balancing.compaction.ways import SteeredWay, Unsteered
from rebalancer.balancing.destinations import Destinations
from rebalancer.balancing.measured_usage import MeasuredUsage
from rebalancer.balancing.occupants import occupants
from rebalancer.balancing.sources import landings_by
from rebalancer.balancing.steering.foresight import Foresight
from rebalancer.balancing.utilization import NodeUtilization, Percentages
from rebalancer.balancing.weighing import UsageWeighing, told
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.eviction.evict import Evict
from rebalancer.eviction.observation import NONE_RECEIVES, NONE_UNDER, TOO_FEW_UNDER
from rebalancer.eviction.steering import DrySteer, Steer
from rebalancer.policy.utilization import UtilizationArgs

_DECIMALS = 9  # smaller differences are floating-point noise


def compact(
    args: UtilizationArgs,
    cluster: Cluster,
    evict: Evict,
    usage: MeasuredUsage,
    selection: Selection,
    ceilings: Percentages,
    demands: CompactionDemands,
) -> None:
    """Empty nodes.

    Args:
        args: when nodes may be emptied, and how many such nodes there have to be.
        cluster: the cluster.
        evict: whom to ask for evictions.
        usage: what nodes and pods use.
        selection: which pods may be moved.
        ceilings: how full pods may make nodes.
        demands: what has to stay in use.

    Raises:
        CycleOver: see `Evict`.
    """
    sources = usage.sources()
    in_use = NodesInUse(cluster, demands)
    under = [source for source in sources if source.within(args.thresholds)]
    candidates = _in_order(cluster, (each for each in under if _is_candidate(each.node, in_use)))
    receivers = [each for each in sources if each.node.name in in_use and cluster.receives(each.node)]
    few = len(under) <= max(args.number_of_nodes, 0)
    counts = {"nodes": len(sources), "under": len(under), "receivers": len(receivers)}
    obstacles = ((not candidates, NONE_UNDER), (few, TOO_FEW_UNDER), (not receivers, NONE_RECEIVES))
    weighing = UsageWeighing(sources, usage.of_pod, args.thresholds, {}, cordoned=True)
    with told(weighing, cluster, evict, counts, obstacles, {"numberOfNodes": args.number_of_nodes}):
        if few or not receivers:
            return
        landings = landings_by(args, cluster, evict)
        peaks = [usage.destination(each.node) for each in sources if not each.node.unschedulable]
        destinations = Destinations(cluster, peaks, ceilings, usage.of_pod, packed=True, landings=landings)
        steer, ways = _unsteered()
        if evict.steer is not None and landings is not None:
            steer, foresight = evict.steer, Foresight(cluster, evict.steer.keys)
            order, replicas = _receiving_order(receivers, candidates), Replicas(cluster)
            ways = SteeredWay(cluster.nodes, order, destinations, ceilings, foresight, replicas)
        parts = (usage, selection, destinations, in_use, ways, args.thresholds)
        Compaction(cluster, evict, steer, *parts).run(candidates)


def _unsteered() -> tuple[Steer, SteeredWay | Unsteered]:
    """Return what carries evictions out without marks, and lets the scheduler place replacements as it likes."""
    return DrySteer(0.0, ("", "")), Unsteered()


def _is_candidate(node: Node, in_use: NodesInUse) -> bool:
    return node.name in in_use and in_use.is_removable(node)


def _in_order(cluster: Cluster, nodes: Iterable[NodeUtilization]) -> list[NodeUtilization]:
    """Return the nodes with the fewest pods first, then the emptiest."""
    return sorted(nodes, key=lambda each: (len(occupants(cluster, each.node)), _fullness(each), each.node.name))


def _receiving_order(receivers: Sequence[NodeUtilization], candidates: Sequence[NodeUtilization]) -> list[Node]:
    """Return the nodes that are not to be emptied, the fullest first, and then those that would be emptied last."""
    emptied = {each.node.name for each in candidates}
    others = [each for each in receivers if each.node.name not in emptied]
    fullest = sorted(others, key=lambda each: (-_fullness(each), each.node.name))
    open_candidates = [each for each in reversed(candidates) if not each.node.unschedulable]
    return [each.node for each in (*fullest, *open_candidates)]


def _fullness(source: NodeUtilization) -> float:
    return round(sum(source.percents().values()), _DECIMALS)
