"""How far nodes are from being the scheduler's choice: by what others request less than they do.

The scheduler fills the node with the least requests first.  A node that uses little and requests much gets nothing
until its rivals, the nodes that request less, have caught up.  So a pod does two things where it lands: it uses, and
it lets others come nearer.
"""

from collections.abc import Iterable

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.forecast import Forecast

#: Points that the rivals of one node may be behind, summed up, for it to come into question at all: a dozen pods.
_REACH = 20.0


class Rivals:
    """The rivals of some nodes, at one moment.

    Args:
        forecast: what nodes request; None if nobody knows where pods land.  Without one that is exact nothing counts.
        names: the nodes that wait for pods.
    """

    def __init__(self, forecast: Forecast | None, names: Iterable[str]) -> None:
        self._forecast = forecast
        self._requested = forecast.requested() if forecast and forecast.exact else {}
        waiting = (name for name in sorted(names) if name in self._requested)
        self._behind = {name: self._points_behind(name, self._requested[name]) for name in waiting}

    def caught_up(self, pod: Pod, place: Node, satisfied: bool) -> float:
        """Return by how many points rivals catch up when a pod lands; negative if its node is set back.

        Args:
            pod: the pod.
            place: where it lands.
            satisfied: whether its node waits no more then.
        """
        if self._forecast is None or place.name not in self._requested:
            return 0.0
        points = self._forecast.points(pod, place)
        return sum(
            min(behind, _REACH) - min(self._left(name, behind, place.name, points, satisfied), _REACH)
            for name, behind in self._behind.items()
        )

    def _left(self, name: str, behind: float, place: str, points: float, satisfied: bool) -> float:
        if name != place:
            return behind - min(points, max(self._requested[name] - self._requested[place], 0.0))
        return 0.0 if satisfied else self._points_behind(name, self._requested[name] + points)

    def _points_behind(self, name: str, requested: float) -> float:
        others = (points for other, points in self._requested.items() if other != name)
        return sum(requested - points for points in others if points < requested)
