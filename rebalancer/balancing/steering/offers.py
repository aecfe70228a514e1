"""Offers: pods that may go, with the nodes where they would do most; and drafts: waves that are made of them.

A move brings as many points as its two nodes cost less afterwards (see `fullness.Goal`).  It must
not lift a node above its band.  One of its nodes must be outside its band now, or have been outside it before, so that
it may be brought in as far as the goal says.  If one is outside now, half the least gain is enough, since the last node
outside may need a small move; otherwise the move has to bring the least gain.  The move that brings most goes first.
Among moves that bring about as much, pods of lower priority and QoS go first, then the larger gain, then older pods.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from math import floor, log
from operator import attrgetter
from typing import NamedTuple

import msgspec
import numpy as np

from rebalancer.balancing.candidates import Candidate, Pool, Selection
from rebalancer.balancing.relief import FREE, Deal, Worth
from rebalancer.balancing.steering.foresight import Avoid, Foresight
from rebalancer.balancing.steering.fullness import MARGIN, Costs, Fills, Fullness, Goal, Mask, percents
from rebalancer.balancing.steering.zones import ZoneSpread
from rebalancer.balancing.utilization import Band
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.eviction.evict import eviction_class
from rebalancer.eviction.steering import Steer
from rebalancer.scheduling.simulator.answer import Answer

#: So many sources (the fullest nodes) and destinations (the emptiest) are looked at, and so many pairs of them.
_MOST_SOURCES = 20
MOST_DESTINATIONS = 12
_MOST_PAIRS = 240
#: The share of the least gain that is enough for a move of a node outside its band.
_OUTSIDE = 0.5
#: Gains that differ by less than this factor are about the same.
_ABOUT = 1.1


class Offer(msgspec.Struct, frozen=True, gc=False):
    """A pod that may go, where to, and what that brings."""

    candidate: Candidate
    destination: str
    gain: float  # points by which its two nodes come nearer to their bands, and a little for evenness
    deal: Deal = FREE  # what that is worth, and what it costs, by what is remembered

    @property
    def order(self) -> tuple[object, ...]:
        """The key to sort offers by that bring about the same: the first is made first."""
        pod = self.candidate.pod
        return (eviction_class(pod), -self.gain, pod.age_order, self.destination)


class _Ends(NamedTuple):
    """Nodes at one end of moves, in columns."""

    fills: Fills  # how full they are
    offered: Fills  # what they have
    outside: Costs  # what they cost because they are outside the narrower band
    unevenness: Costs  # what their distance from the mean costs
    are_out: Mask  # whether they are outside the band
    are_roused: Mask  # whether they are, or were (see `Offers`)

    def take(self, numbers: Sequence[int]) -> "_Ends":
        """Return some of them, in this order; one may come often."""
        return _Ends(*[each.take(numbers, axis=-1) for each in self])  # type: ignore[arg-type]  # column by column


class Offers:
    """Finds the moves that bring most."""

    def __init__(self, goal: Goal, fullness: Fullness, least: float, worth: Worth) -> None:
        self._goal = goal
        self._fullness = fullness
        self._worth = worth
        self.unworthy: dict[Pod, Deal] = {}
        self._least = least  # points that a move has to bring for nodes within their band; half for others
        self._roused: set[str] = set()

    def offers(
        self, candidates: Sequence[Candidate], destinations: Sequence[str], least: float = 0.0
    ) -> Iterator[Offer]:
        """Yield what these pods would bring on these nodes: the moves that bring enough, and at least so much."""
        if not candidates or not destinations:
            return
        gains = self._gains([each.pod for each in candidates], destinations)
        rows, columns = np.nonzero(gains * (gains >= least))
        found = gains[rows, columns]
        order = np.argsort(-found, kind="stable")
        for row, column, gain in zip(rows[order].tolist(), columns[order].tolist(), found[order].tolist(), strict=True):
            if candidates[row].pod.node != destinations[column]:
                yield Offer(candidates[row], destinations[column], gain)

    def _gains(self, pods: Sequence[Pod], destinations: Sequence[str]) -> Costs:
        """Return what each pod (rows) brings on each node (columns); 0 if it brings too little.

        For example, the narrower band is 30 to 58 %.  A node at 63 % costs 5; without a pod of 10 points it costs 0,
        so the pod relieves it by 5.  With the pod a node at 25 % costs 0 instead of 5: the move brings 10, and a little
        for evenness.  A node at 55 % would cost 7 instead of 0, and would be over its band: the pod cannot go there.
        """
        goal, fullness = self._goal, self._fullness
        names = list(dict.fromkeys([pod.node for pod in pods]))
        numbers = {name: number for number, name in enumerate(names)}
        source = self._ends(names, fullness.fills(names)).take([numbers[pod.node] for pod in pods])
        ends = self._ends(destinations, fullness.peak_fills(destinations))
        amounts = fullness.amounts(pods)
        left = source.fills - percents(amounts, source.offered)
        relief, evened = source.outside - goal.outside(left), source.unevenness - goal.unevenness(left)
        # From here on with an axis for the destinations.
        arriving = fullness.arriving(amounts)[:, :, np.newaxis]
        joined = ends.fills[:, np.newaxis] + percents(arriving, ends.offered[:, np.newaxis])
        brought = relief[:, np.newaxis] + ends.outside - goal.outside(joined)
        gains = brought + evened[:, np.newaxis] + ends.unevenness - goal.unevenness(joined)
        least = np.where(ends.are_out | source.are_out[:, np.newaxis], self._least * _OUTSIDE, self._least)
        are_roused = ends.are_roused | source.are_roused[:, np.newaxis]
        fine = are_roused & (brought >= least) & ~goal.over(joined)
        return np.where(fine, np.maximum(gains, least), 0.0)

    def _ends(self, names: Sequence[str], fills: Fills) -> "_Ends":
        outside, unevenness = self._goal.outside(fills), self._goal.unevenness(fills)
        return _Ends(fills, self._fullness.offered(names), outside, unevenness, *self._states(names))

    def in_order(self, offers: Iterable[Offer]) -> Iterator[Offer]:
        """Yield offers in the order in which moves are made, without those that cost more than they gain.

        They come by their gain, and are looked at when they are asked for: as a rule, a wave takes the first few.
        """
        offers = iter(offers)
        first = next(offers, None)
        if first is None:
            return
        for _, alike in groupby(chain((first,), offers), key=lambda each: floor(log(first.gain / each.gain, _ABOUT))):
            for offer in sorted(alike, key=attrgetter("order")):
                if judged := self._judged(offer):
                    yield judged

    def _judged(self, offer: Offer) -> Offer | None:
        """Return the offer with what it is worth; None if it costs more than it gains."""
        candidate, nodes = offer.candidate, self._fullness.sources
        deal = self._worth.deal(candidate, nodes[candidate.pod.node], nodes[offer.destination])
        if deal is FREE:
            return offer
        if deal.refusal:
            known = self.unworthy.get(candidate.pod, deal)
            self.unworthy[candidate.pod] = max(deal, known, key=lambda each: each.gain)
            return None
        return Offer(candidate, offer.destination, offer.gain, deal)

    def givers(self) -> list[str]:
        """Return all nodes as sources: first those that are furthest above their band, then those above the mean.

        Nodes below their band come last: they cost much, but they have nothing to give.
        """
        goal, names = self._goal, sorted(self._fullness.sources)
        fills = self._fullness.fills(names)
        return _ranked(names, -goal.above(fills), -goal.highest(fills))

    def takers(self, nodes: Iterable[Node]) -> list[str]:
        """Return these nodes as destinations: those below their band first, then by the fullest resource."""
        names = sorted(node.name for node in nodes)
        peaks = self._fullness.peak_fills(names)
        return _ranked(names, ~self._goal.below(peaks), self._goal.highest(peaks))

    def sources(self, givers: Sequence[str], takers: Sequence[str]) -> list[str]:
        """Return which of these nodes to look at as sources, for these destinations; both as they are ordered above.

        One node of a move has to be roused, which means that it is, or was, outside its band.  So there are roused
        sources, and for roused destinations the fullest nodes.
        """
        count = min(len(self._roused_of(takers)), MOST_DESTINATIONS)
        fullest = givers[: _MOST_PAIRS // count] if count else ()
        return list(dict.fromkeys((*self._roused_of(givers)[:_MOST_SOURCES], *fullest)))

    def destinations(self, takers: Sequence[str], most: int) -> list[str]:
        """Return which of these nodes to look at as destinations: the emptiest, and the emptiest roused ones."""
        return list(dict.fromkeys((*takers[:most], *self._roused_of(takers)[:most])))

    def _roused_of(self, names: Sequence[str]) -> list[str]:
        return [name for name, is_roused in zip(names, self._states(names)[1], strict=True) if is_roused]

    def _states(self, names: Sequence[str]) -> tuple[Mask, Mask]:
        """Return for each node whether it is outside its band, and whether it is roused.

        That means that it is outside, or was: then it is brought in as far as the goal says.
        """
        out = self._goal.over(self._fullness.fills(names)) | self._goal.below(self._fullness.peak_fills(names))
        self._roused.update([names[number] for number in np.flatnonzero(out).tolist()])
        return out, np.array([name in self._roused for name in names], dtype=np.bool_)


def _ranked(names: Sequence[str], *keys: Costs | Mask) -> list[str]:
    """Return names by keys, the first one first; equal ones in the order that they have."""
    return [names[number] for number in np.lexsort(keys[::-1]).tolist()]


@dataclass(frozen=True, slots=True)
class Draft:
    """Moves, and the nodes that are avoided while they are made."""

    offers: tuple[Offer, ...]  # the moves, in order
    avoid: Avoid  # how many taints each node carries
    destinations: tuple[str, ...]  # the nodes on which its pods may land as foreseen
    # By pod, how likely it lands on which of them; without that, where it may land, the likeliest first.
    shares: Mapping[Pod, Mapping[str, float]] = field(default_factory=dict)
    likely: Mapping[Pod, Sequence[str]] = field(default_factory=dict)
    answers: tuple[Answer, ...] = ()  # what the scheduler says of them in the histories that were looked at

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The pods that go, in order."""
        return tuple(offer.candidate.pod for offer in self.offers)

    @property
    def expected(self) -> dict[Pod, str]:
        """By pod, in order, the node where its replacement is expected."""
        return {offer.candidate.pod: offer.destination for offer in self.offers}


class Planning:
    """What waves are planned with; all of it follows the cluster."""

    def __init__(
        self,
        selection: Selection,
        band: Band,
        steer: Steer,
        compared: Collection[str],  # pods are moved among these nodes
        limit: int | None,  # the most pods that one of them loses
    ) -> None:
        self.cluster = cluster = selection.cluster
        self.evict = selection.evict  # says which pods would be refused
        self.steer = steer
        self.mean, self.ceilings = band.mean, band.high  # of all nodes; how full destinations may become
        self.goal = goal = Goal(band, MARGIN * steer.min_gain)  # what is aimed at
        self.fullness = Fullness(selection, goal, compared, band.high)  # the nodes as they are
        self.pool = Pool(selection, self.fullness.sources, band.high, limit)  # the pods that may go
        worth = Worth(
            self.evict.outlook, band.floors, band.high, dict(zip(goal.names, goal.inner_high.tolist(), strict=True))
        )
        self.offers = Offers(goal, self.fullness, steer.min_gain, worth)  # what they would bring
        self.foresight = Foresight(cluster, steer.keys)  # where they would land
        self.zones = cluster.index(ZoneSpread)  # how owners' pods are spread, which must not get worse
