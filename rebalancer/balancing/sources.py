"""Where the figures of utilization strategies come from, by their arguments."""

from collections.abc import Iterable

from rebalancer.balancing.landings import Landings
from rebalancer.balancing.measured_usage import MeasuredUsage
from rebalancer.balancing.usage import Usage, measured, requested
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import Measured
from rebalancer.cluster.resources import CPU, MEMORY, PODS
from rebalancer.errors import StrategyError
from rebalancer.eviction.evict import Evict
from rebalancer.policy.utilization import UtilizationArgs
from rebalancer.scheduling.simulator.configuration import ConfigurationError


def usage_by(args: UtilizationArgs, cluster: Cluster, evict: Evict) -> Usage:
    """Return what nodes and pods use: measured if the arguments say so, else requested.

    Warnings of the source go into the report.

    Raises:
        StrategyError: the source has no answer, or does not measure what `thresholds` name.
    """
    if args.metrics_utilization is None:
        return requested(cluster, args.thresholds)
    return measured(cluster, _measured(args, cluster, evict), args.thresholds)


def measured_usage_by(args: UtilizationArgs, cluster: Cluster, evict: Evict) -> MeasuredUsage:
    """Return measured usage as relief needs it; what pods request stands in if the arguments name no source.

    Raises:
        StrategyError: as for `usage_by`.
    """
    if args.metrics_utilization is None:
        return MeasuredUsage(cluster, _requested(cluster, args.thresholds), args.thresholds, requested=True)
    return MeasuredUsage(cluster, _measured(args, cluster, evict), args.thresholds)


def landings_by(args: UtilizationArgs, cluster: Cluster, evict: Evict) -> Landings | None:
    """Return where replacements land; None if the arguments say that the scheduler is unknown.

    Raises:
        StrategyError: the scheduler's configuration cannot be read.
    """
    if args.metrics_utilization is not None and args.metrics_utilization.scheduler == "unknown":
        return None
    try:
        return Landings(cluster, evict)
    except ConfigurationError as error:
        raise StrategyError(str(error)) from None


def _requested(cluster: Cluster, names: Iterable[str]) -> Measured:
    tracked = sorted({CPU, MEMORY, *names} - {PODS})
    nodes = {node.name: {name: cluster.used(node).get(name, 0) for name in tracked} for node in cluster.nodes}
    active = (pod for pod in cluster.pods() if pod.active)
    pods = {pod.key: {name: pod.spec.requests.get(name, 0) for name in tracked} for pod in active}
    return Measured(nodes, nodes, pods)


def _measured(args: UtilizationArgs, cluster: Cluster, evict: Evict) -> Measured:
    figures = cluster.measure(args.metrics_utilization)
    for text in figures.warnings:
        evict.warn(text)
    return figures
