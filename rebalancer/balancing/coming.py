"""Whether the load of a node falls by itself within the hour, as it did on earlier days.

An earlier day counts if it has values for every resource that is above its target now.  The load fell on that day if
the node was above a target at some time from an hour before this time of day on, and within these targets from some
time in the coming hour to the end of that hour.  The node is left alone if its load fell on more than half of these
days, and there are three of them, or all that were asked about.

An example: it is 17:30, and n4 uses 80 % of its cpu, with a target of 60 %.  On 5 of the last 7 days it was above 60 %
at 17:30, and below it from 18:00 on.  It falls by itself at 18:00, and loses no pods now.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from statistics import median_low

from rebalancer.balancing.utilization import NodeUtilization, Percentages
from rebalancer.cluster.measured import ComingLoad, Course

_HOUR = 3600
_FEWEST_DAYS = 3
_STEP = 300


def falls(node: NodeUtilization, targets: Percentages, coming: ComingLoad) -> tuple[timedelta, int, int] | None:
    """Return in what time a node falls below its targets by itself, on how many days it did, of how many.

    None if it is not known to, or not to fall.
    """
    over = node.above(targets).points
    by_resource = {name: coming.courses.get(name, {}).get(node.node.name, ()) for name in over}
    known = [list(days) for days in zip(*by_resource.values(), strict=False)]
    bounds = {name: node.cap(name, targets) for name in over}
    counted = [_day(dict(zip(by_resource, day, strict=True)), bounds) for day in known]
    fell = [when for when in counted if when is not None]
    if len(counted) < min(_FEWEST_DAYS, coming.days) or 2 * len(fell) <= len(counted):
        return None
    return timedelta(seconds=median_low(fell)), len(fell), len(counted)


def _day(courses: Mapping[str, Course], bounds: Mapping[str, int]) -> int | None:
    """Return after how many seconds a node fell on one day; None if it did not."""
    over = sorted({ahead for name, course in courses.items() for ahead in _above(course, bounds[name])})
    before = [ahead for ahead in over if ahead <= _HOUR]
    times = [ahead for course in courses.values() for ahead in course if 0 <= ahead <= _HOUR]
    if not before or not times or before[-1] >= max(times):
        return None
    return max(0, before[-1] + _STEP)


def _above(course: Course, bound: int) -> Sequence[int]:
    return [ahead for ahead, used in course.items() if used > bound]
