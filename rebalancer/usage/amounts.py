"""Converts the values of queries to amounts of resources.

Example, for CPU and a node with 8 cores of capacity and 6 allocatable:

    ratio 0.5, base capacity         0.5 * 8000       4000 millicores
    percent 50, base allocatable     50 / 100 * 6000  3000 millicores
    cores 1.5                        1.5 * 1000       1500 millicores
"""

from math import isfinite

from rebalancer.cluster.node import Node
from rebalancer.cluster.resources import CPU
from rebalancer.policy.usage import UsageQuery

_WHOLE = {"ratio": 1.0, "percent": 100.0}
_MILLI = 1000
#: Contention is in hundredths of a percent.
_HUNDREDTHS = 10_000


def amount(value: float, resource: str, query: UsageQuery, node: Node | None) -> int | None:
    """Return a value in millicores, bytes or whole units; None if it is not a usable number.

    Args:
        value: as the query gives it.
        resource: the resource's name.
        query: has the unit and the base of the value.
        node: the node whose capacity or allocatable amount is the base.
    """
    if not usable(value):
        return None
    if query.unit in _WHOLE:
        if query.base == "time":
            return round(value / _WHOLE[query.unit] * _HUNDREDTHS)
        offered = {} if node is None else node.capacity if query.base == "capacity" else node.allocatable
        return round(value / _WHOLE[query.unit] * offered[resource]) if resource in offered else None
    return round(value * _MILLI) if resource == CPU else round(value)


def usable(value: float) -> bool:
    """Return whether a value can be an amount: a number, and not negative."""
    return isfinite(value) and value >= 0
