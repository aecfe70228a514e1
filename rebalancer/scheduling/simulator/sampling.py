"""In a large cluster the scheduler stops once it has found enough feasible nodes, and scores only those: a window.

Source: the Kubernetes documentation, Scheduler Performance Tuning; the order of nodes as observed with 1.36.

1. How many are enough (`nodes_to_score`): up to 100 nodes, all.  Of more, the configured share; by default 50 % less
   1 % for every 125 nodes, at least 5 %.  Never fewer than 100.
2. The scheduler goes through a list of nodes that it keeps: the zones in turn, in each the nodes as it learnt of them.
   After a restart it learns of all at once, in the order of their names; nobody knows which it is, so both count
   (`orders`).
3. It starts where it stopped for the pod before, and goes round.  So a window is contiguous, and may start anywhere.
   `SamplingWindow` is one of them; `winners_in_line` tells the nodes that may win in any.  (Several threads look, so a
   window may have a few gaps; these are not foreseen.)

In a window the highest of some scores becomes 100, so a node may score a little less among all nodes than in a window.
The winners of all windows are told by what nodes score among all.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rebalancer.cluster.node import Node
from rebalancer.scheduling.simulator.plugin import ByNode, Nodes

_ALL = 100
_SHARE = 50
_STEP = 125
_LEAST_SHARE = 5
_WHOLE = 100
#: Indexes of nodes in the order in which the scheduler comes to them.
Order = NDArray[np.intp]
_EARLIEST = datetime.min.replace(tzinfo=UTC)
_ZONE_LABELS = (
    ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"),
    ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
)


class SamplingWindow(NamedTuple):
    """Where the scheduler begins to look: at this place, from 0 to 1, of one of the orders it keeps the nodes in."""

    order: int = 0
    start: float = 0.0


def nodes_to_score(percentage: int, nodes: int) -> int:
    """Return how many feasible nodes the scheduler scores out of `nodes`; a percentage of 0 means the default."""
    if nodes < _ALL:
        return nodes
    share = percentage or max(_SHARE - nodes // _STEP, _LEAST_SHARE)
    return max(nodes * min(share, _WHOLE) // _WHOLE, min(_ALL, nodes))


def orders(nodes: Sequence[Node]) -> tuple[Order, Order]:
    """Return the indexes of nodes in the orders in which the scheduler may keep them: by arrival, and by name."""
    positions = range(len(nodes))
    arrived = sorted(positions, key=lambda each: (nodes[each].created or _EARLIEST, nodes[each].name))
    named = sorted(positions, key=lambda each: nodes[each].name)
    by_arrival, by_name = _zones_in_turn(nodes, arrived), _zones_in_turn(nodes, named)
    return by_arrival, by_arrival if np.array_equal(by_name, by_arrival) else by_name  # one where both are equal


def _zones_in_turn(nodes: Sequence[Node], positions: Iterable[int]) -> Order:
    zones: dict[object, list[int]] = {}
    for each in positions:
        labels = nodes[each].labels
        zone = tuple(labels.get(new, labels.get(old)) for new, old in _ZONE_LABELS)
        zones.setdefault(zone, []).append(each)
    ranked = sorted((rank, turn, each) for turn, zone in enumerate(zones.values()) for rank, each in enumerate(zone))
    return np.array([each for _, _, each in ranked], dtype=np.intp)


def circle_from(order: Order, start: float, some: Nodes) -> Order:
    """Return some nodes in the order in which the scheduler comes to them if it begins at this place of its list."""
    first, among = int(start * len(order)), some.among(len(order))
    round_trip = np.concatenate((order[first:], order[:first]))
    return round_trip[among.take(round_trip)]


def winners_in_line(line: Order, totals: ByNode, enough: int) -> set[int]:
    """Return the nodes that win in some window of a line: in the one of theirs whose best scores least.

    For example, the places of a line score 5 9 3 4 4 8 1 2, and 3 are looked at.  The best of the windows score 9 9 4 8
    8 8.  So both 4 win, in the window 3 4 4, and neither 1 nor 2 wins.
    """
    edge = np.full(enough - 1, np.iinfo(np.int64).max)
    bar = -_greatest(-np.concatenate((edge, _greatest(totals, enough), edge)), enough)
    return set(line[totals >= bar].tolist())


def _greatest(values: ByNode, size: int) -> ByNode:
    """Return the greatest value of each run of this size."""
    width = 1
    while width < size:
        step = min(width, size - width)
        values, width = np.maximum(values[:-step], values[step:]), width + step
    return values
