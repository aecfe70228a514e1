"""In a large cluster the scheduler stops once it has found enough feasible nodes, and scores only those: a window.

Source: the Kubernetes documentation, Scheduler Performance Tuning; the order of nodes as observed with 1.36.

1. How many are enough (`nodes_to_score`): up to 100 nodes, all.  Of more, the configured share; by default 50 % less
   1 % for every 125 nodes, at least 5 %.  Never fewer than 100.
2. The scheduler goes through a list of nodes that it keeps: the zones in turn, in each the nodes as it learnt of them.
   After a restart it learns of all at once, in the order of their names; nobody knows which it is, so both count
   (`orders`).
3. It starts where it stopped for the pod before, and goes round.  So a window is contiguous, and may start anywhere.
   `SamplingWindow` is one of them; `window_winners` tells the nodes that may win in any.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import NamedTuple

from rebalancer.cluster.node import Node

_ALL = 100
_SHARE = 50
_STEP = 125
_LEAST_SHARE = 5
_WHOLE = 100
_EARLIEST = datetime.min.replace(tzinfo=UTC)
_ZONE_LABELS = (
    ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"),
    ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
)


class SamplingWindow(NamedTuple):
    """Where the scheduler begins to look.

    Attributes:
        order: which of the orders it keeps the nodes in.
        start: where in this order it begins, from 0 to 1.
    """

    order: int = 0
    start: float = 0.0


def nodes_to_score(percentage: int, nodes: int) -> int:
    """Return how many feasible nodes are enough.

    Args:
        percentage: the configured share; 0 if none is configured.
        nodes: all nodes of the cluster, or those that the pod names.
    """
    if nodes < _ALL:
        return nodes
    share = percentage or max(_SHARE - nodes // _STEP, _LEAST_SHARE)
    return max(nodes * min(share, _WHOLE) // _WHOLE, min(_ALL, nodes))


def orders(nodes: Sequence[Node]) -> tuple[Sequence[int], Sequence[int]]:
    """Return the positions of nodes in the orders in which the scheduler may keep them: by arrival, and by name."""
    positions = range(len(nodes))
    arrived = sorted(positions, key=lambda each: (nodes[each].created or _EARLIEST, nodes[each].name))
    named = sorted(positions, key=lambda each: nodes[each].name)
    by_arrival, by_name = _zones_in_turn(nodes, arrived), _zones_in_turn(nodes, named)
    return by_arrival, by_arrival if by_name == by_arrival else by_name  # one list where both are equal


def _zones_in_turn(nodes: Sequence[Node], positions: Iterable[int]) -> list[int]:
    zones: dict[object, list[int]] = {}
    for each in positions:
        labels = nodes[each].labels
        zone = tuple(labels.get(new, labels.get(old)) for new, old in _ZONE_LABELS)
        zones.setdefault(zone, []).append(each)
    ranked = sorted((rank, turn, each) for turn, zone in enumerate(zones.values()) for rank, each in enumerate(zone))
    return [each for _, _, each in ranked]


def window_of(order: Sequence[int], start: float, feasible: Collection[int], enough: int) -> list[int]:
    """Return the feasible nodes that are scored if the scheduler begins at this place, sorted."""
    first, among = int(start * len(order)), set(feasible)
    round_trip = (*order[first:], *order[:first])
    return sorted(islice(filter(among.__contains__, round_trip), enough))


def window_winners(totals: Sequence[int], circle: Sequence[int], enough: int) -> set[int]:
    """Return the places of the nodes that win in some window, wherever it starts.

    A node wins in a window that has it and none that is better.  So there have to be enough nodes between the last
    better one before it and the next better one after it.  Scores are those among all feasible nodes.

    For example, 8 nodes score 5 9 3 4 4 8 1 2, and 3 of them are looked at.  Between 9 and 8 there are three, so both 4
    win, in the window 3 4 4.  Between 8 and 5, round the end of the list, there are two, so neither 1 nor 2 wins.

    Args:
        totals: what the feasible nodes score.
        circle: their places in the scheduler's order.
        enough: how many of them are scored.
    """
    scores, count = list(map(totals.__getitem__, circle)), len(circle)
    # Each window has one of these blocks as a whole, also round the end of the list.  So whoever wins scores at least
    # as much as the best of some block; as a rule that leaves few nodes to look at.
    block = (enough + 3) // 4
    bar = min(max(scores[start : start + block]) for start in range(0, count - block + 1, block))
    near = [place for place, score in enumerate(scores) if score >= bar]
    before = _next_better([*(place - count for place in near), *near], scores)
    after = _next_better([*(place + count for place in reversed(near)), *reversed(near)], [*scores, *scores])
    best = max(scores)
    return {circle[place] for place in near if scores[place] == best or after[place] - before[place] - 1 >= enough}


def _next_better(places: Iterable[int], scores: Sequence[int]) -> dict[int, int]:
    """Return for each place the last one before it that scores more; places without one are left out."""
    found: dict[int, int] = {}
    better: list[int] = []
    for place in places:
        while better and scores[better[-1]] <= scores[place]:
            better.pop()
        if better:
            found[place] = better[-1]
        better.append(place)
    return found
