"""What the coming hours looked like on earlier days, asked of Prometheus by a range query for each day.

Asked is from an hour before this time of day to two hours after it, in steps of five minutes.  For example, at 17:30
with `sameHour: 3d` these are 16:30 to 19:30 of yesterday and of the two days before.  Days are 24 hours long.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from rebalancer.cluster.measured import Course
from rebalancer.cluster.node import Node
from rebalancer.policy.usage import NodeQuery
from rebalancer.usage.amounts import amount
from rebalancer.usage.history import AskRange
from rebalancer.usage.node_names import NodeNames
from rebalancer.usage.promql import VectorElement

_DAY = 86_400
_BEFORE, _AFTER, STEP = 3600, 7200, 300


def courses(
    ask: AskRange, resource: str, query: NodeQuery, nodes: Iterable[Node], days: int, now: datetime
) -> Mapping[str, tuple[Course, ...]]:
    """Return by node what it used on each earlier day for which there are values, yesterday first.

    Raises:
        SourceError: there is no usable answer.
    """
    known = {node.name: node for node in nodes}
    names = NodeNames(known.values(), query.node)
    found: dict[str, list[Course]] = {}
    for day in range(1, days + 1):
        here = now.timestamp() - day * _DAY
        by_node: dict[str, dict[int, int]] = {}
        for series in ask(query.query, here - _BEFORE, here + _AFTER, STEP).series:
            name = names.of(VectorElement(series.labels, 0.0))
            if name is None:
                continue
            for each in series.values:
                used = amount(each.value, resource, query, known[name])
                if used is not None:
                    by_node.setdefault(name, {})[round(each.time - here)] = used
        for name, course in by_node.items():
            found.setdefault(name, []).append(course)
    return {name: tuple(each) for name, each in found.items()}


def quantile_of(course: Iterable[Course], quantile: float) -> int | None:
    """Return the quantile of what was used from this time of day on, over all days; None without values."""
    values = sorted(used for each in course for ahead, used in each.items() if ahead >= 0)
    return values[min(len(values) - 1, int(quantile * len(values)))] if values else None
