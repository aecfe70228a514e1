"""How far nodes are from being the scheduler's choice: by what others request less than they do.

The scheduler fills the node with the least requests first.  A node that uses little and requests much gets nothing
until the nodes that request less have been filled up to it.  So a pod does two things where it lands: it uses, and it
brings other nodes nearer to being chosen.

An example: of `low` 20 % is requested, of a 15 % and of b 19 %.  So `low` is 5 + 1 = 6 points away.  A pod of 3 points
that lands on a shortens that by 3; one that lands on b by 1, since b is level with `low` then; one that lands on `low`
itself lengthens it by 6.
"""

from collections.abc import Iterable

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.forecast import Forecast

#: Points that a node may be away for it to come into question at all: a dozen pods.
_REACH = 20.0


class ChoiceDistance:
    """The distances of some nodes, at one moment.

    Args:
        forecast: what nodes request; None if nobody knows where pods land.  Without one that is exact nothing counts.
        names: the nodes that wait for pods.
    """

    def __init__(self, forecast: Forecast | None, names: Iterable[str]) -> None:
        self._forecast = forecast
        self._requested = forecast.requested() if forecast and forecast.exact else {}
        waiting = (name for name in sorted(names) if name in self._requested)
        self._distances = {name: self._distance(name, self._requested[name]) for name in waiting}

    def shortened_by(self, pod: Pod, destination: Node, satisfied: bool) -> float:
        """Return by how many points all distances together shrink when a pod lands; negative if they grow.

        Args:
            pod: the pod.
            destination: where it lands.
            satisfied: whether that node waits no more then.
        """
        if self._forecast is None or destination.name not in self._requested:
            return 0.0
        points = self._forecast.points(pod, destination)
        return sum(
            min(before, _REACH) - min(self._after(name, before, destination.name, points, satisfied), _REACH)
            for name, before in self._distances.items()
        )

    def _after(self, name: str, before: float, destination: str, points: float, satisfied: bool) -> float:
        if name != destination:
            return before - min(points, max(self._requested[name] - self._requested[destination], 0.0))
        return 0.0 if satisfied else self._distance(name, self._requested[name] + points)

    def _distance(self, name: str, requested: float) -> float:
        others = (points for other, points in self._requested.items() if other != name)
        return sum(requested - points for points in others if points < requested)
