"""Which samples count: by their value, by their age, and by how far they are ahead of this machine's clock."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.errors import SourceError
from rebalancer.policy.arguments import duration_text

T = TypeVar("T")

#: How far the clocks of two machines may be apart.  A sample that is further ahead is from the future.
CLOCK_SKEW = timedelta(minutes=1)
_TOO_MUCH = 2**63


def usable(value: float) -> bool:
    """Return whether a value can be an amount: a number that is not negative, and within 64 bits; NaN is none."""
    return 0 <= value < _TOO_MUCH


def stale(age: timedelta, longest: timedelta | None) -> str:
    """Return why a sample of this age does not count: too old, or from the future; empty if it counts."""
    if -age > CLOCK_SKEW:
        return f"its sample is from the future, {in_words(-age)} ahead"
    if longest is None or age <= longest:
        return ""
    return f"its sample is {in_words(age)} old, more than {in_words(longest)}"


def of_nodes(cluster: Cluster, usage: Callable[[Node], T | str]) -> tuple[Mapping[str, T], Mapping[str, str]]:
    """Return what nodes use by name, and why it is missing of the others: what `usage` tells is either of both."""
    told = {node.name: usage(node) for node in cluster.nodes}
    missing = {name: each for name, each in told.items() if isinstance(each, str)}
    return {name: each for name, each in told.items() if not isinstance(each, str)}, missing


def instant(seconds: float) -> datetime:
    """Return the time that a source gives in seconds since 1970; raises SourceError if there is no such time."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError) as error:
        raise SourceError(f"{seconds:g} seconds since 1970 is not a time") from error


def in_words(time: timedelta) -> str:
    """Return a time in whole seconds as a policy would write it, like `1h3m`."""
    return duration_text(timedelta(seconds=round(time.total_seconds())))


#: Called with a source, and the time of the oldest sample that it gave in this cycle.
Sampled = Callable[[str, datetime], None]
