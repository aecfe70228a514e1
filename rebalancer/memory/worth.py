"""What a move is worth, and what it costs, both in point hours: points of a node that are over its target, times hours.

The gain is expected from what earlier cycles measured: a node that has been over for two hours is expected to stay so
for two more, and one that was so in every cycle that is remembered, for six.  The price is that of an ordinary move
(`trust.movePrice`), times three factors: how long the owner's replacements took to become Ready, how important the pod
is by priority and QoS, and how many of the owner's replicas are missing meanwhile.

Example, an ordinary move at 6 point hours: n1 is 8 points over since an hour and a half, and a pod takes 5 of them.
The gain is 5 points for an hour and a half, 7.5 point hours.  Its owner has 4 replicas, which are Ready in 20 seconds:
the price is 6, and the pod goes.  If replicas took a minute, the price would be 12: it stays until n1 has been over for
2.4 hours.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median

from rebalancer.cluster.pod import Pod
from rebalancer.memory.document import PastMove, Reading

#: As long as nobody knows when an excess began, it is expected to last for so many hours.
LONG = 6.0
#: An ordinary replacement is Ready within so many seconds; a slow one counts as ten of it at most.
_READY_SECONDS, _SLOWEST = 30.0, 10.0
_QOS = {"BestEffort": 0.5, "Burstable": 1.0, "Guaranteed": 2.0}
#: One replica of so many missing is ordinary; the factor is between these two.
_ORDINARY_REPLICAS, _FEWEST, _MOST = 4, 0.5, 4.0


def hours_outside(
    readings: Sequence[Reading], node: str, low: Mapping[str, float], high: Mapping[str, float], now: datetime
) -> float:
    """Return for how many hours a node that is outside its bounds now is expected to stay so.

    Args:
        readings: of earlier cycles, the oldest first; without any, nobody knows since when it is outside.
        node: its name.
        low: percent by resource below which it is outside.
        high: percent above which it is.
        now: when it was measured last.
    """
    for reading in reversed(readings):
        measured = reading.nodes.get(node)
        if measured is None or not _is_outside(measured, low, high):
            return min((now - reading.at) / timedelta(hours=1), LONG)
    return LONG


def _is_outside(measured: Mapping[str, float], low: Mapping[str, float], high: Mapping[str, float]) -> bool:
    over = any(measured.get(name, 0.0) > most for name, most in high.items())
    return over or any(name in measured and measured[name] < least for name, least in low.items())


def ready_seconds(moves: Iterable[PastMove]) -> Mapping[tuple[str, str], float]:
    """Return by owner how long its replacements took to become Ready: the median of those that were seen."""
    seen: dict[tuple[str, str], list[float]] = {}
    for move in moves:
        if move.ready is not None and not move.was_unready:
            seen.setdefault(move.key, []).append(max(0.0, (move.ready - move.at).total_seconds()))
    return {key: median(seconds) for key, seconds in seen.items()}


def price(ordinary: float, pod: Pod, seconds: float | None, missing: int, replicas: int) -> float:
    """Return what it costs to move a pod, in point hours.

    Args:
        ordinary: the price of an ordinary move.
        pod: the pod.
        seconds: how long replacements of its owner take to become Ready; None if that was not seen.
        missing: how many pods of its owner are missing once it has gone.
        replicas: how many there are, with those that are missing.
    """
    waiting = min(max((seconds or 0.0) / _READY_SECONDS, 1.0), _SLOWEST)
    priority = pod.spec.priority or 0
    importance = _QOS.get(pod.qos, 1.0) * (2.0 if priority > 0 else 0.5 if priority < 0 else 1.0)
    lacking = min(max(_ORDINARY_REPLICAS * missing / max(replicas, 1), _FEWEST), _MOST)
    return ordinary * waiting * importance * lacking
