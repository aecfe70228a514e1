"""Where the figures of utilization strategies come from, by their arguments."""

from rebalancer.args.utilization import UtilizationArgs
from rebalancer.balancing.landings import Landings
from rebalancer.balancing.measured_usage import MeasuredUsage
from rebalancer.balancing.usage import Usage, measured, requested
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import Measured
from rebalancer.errors import StrategyError
from rebalancer.eviction.evict import Evict
from rebalancer.scheduling.simulation import Simulation
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
    """Return measured usage as relief needs it.

    Raises:
        StrategyError: as for `usage_by`.
    """
    return MeasuredUsage(cluster, _measured(args, cluster, evict), args.thresholds)


def landings_by(args: UtilizationArgs, cluster: Cluster, evict: Evict) -> Landings | None:
    """Return where replacements land; None if the arguments say that the scheduler is unknown.

    Raises:
        StrategyError: the scheduler's configuration cannot be read.
    """
    if args.metrics_utilization is not None and args.metrics_utilization.scheduler == "unknown":
        return None
    try:
        return Landings(cluster.index(Simulation), evict)
    except ConfigurationError as error:
        raise StrategyError(str(error)) from None


def _measured(args: UtilizationArgs, cluster: Cluster, evict: Evict) -> Measured:
    figures = cluster.measure(args.metrics_utilization)
    for text in figures.warnings:
        evict.warn(text)
    return figures
