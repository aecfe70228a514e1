"""In a large cluster the scheduler stops once it has found enough feasible nodes, and scores only those: a window.

Source: the Kubernetes documentation, Scheduler Performance Tuning; the order of nodes as observed with 1.36.

1. How many are enough (`nodes_to_score`): up to 100 nodes, all.  Of more, the configured share; by default 50 % less
   1 % for every 125 nodes, at least 5 %.  Never fewer than 100.
2. The scheduler goes through a list of nodes that it keeps: the zones in turn, in each the nodes as it learnt of them.
   After a restart it learns of all at once, in the order of their names; nobody knows which it is, so both count.
3. It starts where it stopped for the pod before, and goes round.  So a window is contiguous, and may start anywhere.
   (Several threads look, so a window may have a few gaps; these are not foreseen.)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rebalancer.cluster.node import Node
from rebalancer.scheduling.simulator.plugin import WHOLE, ByNode, Mask, Nodes

_ALL = 100
_SHARE = 50
_STEP = 125
_LEAST_SHARE = 5
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

    def circle(self, orders: Sequence[Order], some: Nodes) -> Order:
        """Return some nodes in the order in which the scheduler comes to them; there may be one order only."""
        return circle_from(orders[self.order % len(orders)], self.start, some)


def nodes_to_score(percentage: int, nodes: int) -> int:
    """Return how many feasible nodes the scheduler scores out of `nodes`; a percentage of 0 means the default."""
    if nodes < _ALL:
        return nodes
    share = percentage or max(_SHARE - nodes // _STEP, _LEAST_SHARE)
    return max(nodes * min(share, WHOLE) // WHOLE, min(_ALL, nodes))


def orders(nodes: Sequence[Node]) -> tuple[Order, ...]:
    """Return the different orders in which the scheduler may keep nodes, as indexes: by arrival, and by name."""
    positions = range(len(nodes))
    arrived = sorted(positions, key=lambda each: (nodes[each].created or _EARLIEST, nodes[each].name))
    named = sorted(positions, key=lambda each: nodes[each].name)
    by_arrival, by_name = _zones_in_turn(nodes, arrived), _zones_in_turn(nodes, named)
    return (by_arrival,) if np.array_equal(by_name, by_arrival) else (by_arrival, by_name)


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


def fewest_in_windows(circle: Order, some: Nodes, enough: int) -> int:
    """Return how many of some nodes the window has, wherever it starts, that has the fewest of them.

    For example, nodes stand at the places 0, 1 and 5 of eight, and five are looked at.  From place 0 on these are two
    of them, and from place 2 on it is one.
    """
    chosen, enough = some.among(int(circle.max()) + 1)[circle], min(enough, len(circle))
    counts = np.cumsum(np.concatenate(([0], chosen, chosen[:enough])))
    return int((counts[enough:] - counts[:-enough]).min())


@dataclass(frozen=True, slots=True)
class Parts:
    """Some nodes with their total scores, and the parts of them that the scheduler may score."""

    orders: Sequence[Order]  # of all nodes
    nodes: Nodes
    size: int  # how many of these nodes are in each part
    totals: ByNode  # the score of each node if all are scored

    def beginning(self, start: float) -> Mask:
        """Return for each of the nodes whether it is in the part that begins at a place from 0 to 1 of the list."""
        part = circle_from(self.orders[0], start, self.nodes)[: self.size]
        return self.nodes.of(Nodes(part).among(len(self.orders[0])))

    def fewest(self, some: Mask) -> int:
        """Return how many of some of the nodes are in the part that has the fewest, in any of the orders."""
        chosen = Nodes(self.nodes.indexes[some])
        return min(fewest_in_windows(circle_from(each, 0.0, self.nodes), chosen, self.size) for each in self.orders)

    def winners(self) -> set[int]:
        """Return the indexes of the nodes that win in some part, in any of the orders, by these totals.

        In a part the highest score of a plugin becomes 100, so nodes may score a little otherwise there.  In random
        clusters, one of a thousand nodes that win in some part is not found.
        """
        found = set[int]()
        for order in self.orders:
            circle = circle_from(order, 0.0, self.nodes)
            line = np.concatenate((circle, circle[: self.size - 1]))
            found |= winners_in_line(line, self.totals[np.searchsorted(self.nodes.indexes, line)], self.size)
        return found


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
