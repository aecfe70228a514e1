"""From the values of queries to amounts of resources."""

from math import isfinite

from rebalancer.args.usage import UsageQuery
from rebalancer.cluster.node import Node
from rebalancer.cluster.resources import CPU

_WHOLE = {"ratio": 1.0, "percent": 100.0}
_MILLI = 1000


def amount(value: float, resource: str, query: UsageQuery, node: Node | None) -> int | None:
    """Return a value in millicores, bytes or whole units; None if it is not a usable number.

    Args:
        value: as the query gives it.
        resource: what it is an amount of.
        query: with the unit and the base of the value.
        node: whose capacity or allocatable amount is the base.
    """
    if not usable(value):
        return None
    if query.unit in _WHOLE:
        offered = {} if node is None else node.capacity if query.base == "capacity" else node.allocatable
        return round(value / _WHOLE[query.unit] * offered[resource]) if resource in offered else None
    return round(value * _MILLI) if resource == CPU else round(value)


def usable(value: float) -> bool:
    """Return whether a value can be an amount: a number, and not negative."""
    return isfinite(value) and value >= 0
