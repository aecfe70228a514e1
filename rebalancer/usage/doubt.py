"""What becomes of nodes without a fresh sample: left out with a warning, too many of them, or requests instead."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from rebalancer.args.usage import MetricsUtilization
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import Measured
from rebalancer.cluster.resources import Resources
from rebalancer.errors import StrategyError

_NAMED = 3


class SourceError(StrategyError):
    """A source has no answer, or none that can be used."""


def settled(found: Measured, wanted: MetricsUtilization, cluster: Cluster, resources: Iterable[str]) -> Measured:
    """Return figures that a strategy may go by.

    Args:
        found: what the source says; each node of the cycle has figures or is missing.
        wanted: the policy's word on what to do without.
        cluster: the cycle's.
        resources: what requests have to stand in for.

    Raises:
        StrategyError: too few nodes have fresh figures.
    """
    if not found.missing:
        return found
    if wanted.when_missing == "requests":
        return _with_requests(found, cluster, tuple(resources))
    total = len(cluster.nodes)
    fresh = total - len(found.missing)
    reasons = described(found.missing)
    if fresh * 100 < wanted.min_fresh_nodes * total:
        also = "".join(f"; {text}" for text in found.warnings)
        raise StrategyError(
            f"only {fresh} of {total} nodes have fresh usage, and minFreshNodes is {wanted.min_fresh_nodes:g} %: "
            f"{reasons}{also}"
        )
    return replace(
        found, warnings=(*found.warnings, f"nodes without fresh usage are neither source nor destination: {reasons}")
    )


def _with_requests(found: Measured, cluster: Cluster, resources: tuple[str, ...]) -> Measured:
    def only(amounts: Resources) -> Resources:
        return {name: amounts.get(name, 0) for name in resources}

    absent = [node for node in cluster.nodes if node.name in found.missing]
    stand_in = {node.name: only(cluster.used(node)) for node in absent}
    pods = found.pods if found.nodes else {}
    if pods is not None:
        pods = {**pods, **{pod.key: only(pod.spec.requests) for node in absent for pod in cluster.active_pods_on(node)}}
    return replace(
        found,
        nodes={**found.nodes, **stand_in},
        peaks={**found.peaks, **stand_in},
        pods=pods,
        missing={},
        warnings=(*found.warnings, f"requests stand in for missing usage: {described(found.missing)}"),
    )


def described(missing: Mapping[str, str]) -> str:
    """Return the nodes and why they are missing, the first of them by name."""
    named = [f"{name} ({missing[name]})" for name in sorted(missing)[:_NAMED]]
    more = len(missing) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


#: How far the clocks of two machines may be apart.  A sample that is further ahead is from the future.
CLOCK_SKEW = timedelta(minutes=1)


def stale(age: timedelta, longest: timedelta | None) -> str:
    """Return why a sample of this age does not count, as it is too old or from the future; empty if it does."""
    if -age > CLOCK_SKEW:
        return f"its sample is from the future, {in_words(-age)} ahead"
    if longest is None or age <= longest:
        return ""
    return f"its sample is {in_words(age)} old, more than {in_words(longest)}"


def instant(seconds: float) -> datetime:
    """Return the time that a source gives in seconds since 1970.

    Raises:
        SourceError: there is no such time.
    """
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError) as error:
        raise SourceError(f"{seconds:g} seconds since 1970 is not a time") from error


def in_words(time: timedelta) -> str:
    """Return a time as a policy would write it, like `1h3m`."""
    seconds = round(time.total_seconds())
    parts = ((seconds // 3600, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"
