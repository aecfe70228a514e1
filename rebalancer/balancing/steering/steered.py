"""Carries steering out: wave by wave, each planned on where the replacements of the one before really landed."""

from collections.abc import Sequence
from contextlib import ExitStack

from rebalancer.balancing.cause_details import arrival, why_relieved, with_pod_gone
from rebalancer.balancing.relief import staying_over
from rebalancer.balancing.steering.foresight import Avoid
from rebalancer.balancing.steering.offers import Draft, Offer, Planning
from rebalancer.balancing.steering.waves import Waves
from rebalancer.cluster.resources import arriving
from rebalancer.eviction.causes import Cause, Code, cause
from rebalancer.eviction.steering import ActualPlacement, Move, Wave
from rebalancer.eviction.verdict import Verdict

#: Steering ends after so many waves in a row that mostly landed on other nodes than foreseen.
ELSEWHERE = 2


class Steered:
    """Makes waves until no move pays, or until replacements land on other nodes than foreseen.

    A node should lose pods while it is above the ceilings that waves are planned with.
    """

    def __init__(self, planning: Planning) -> None:
        self._planning, self._waves = planning, Waves(planning)
        self._sources, self._ceilings = planning.fullness.sources, planning.ceilings

    def run(self) -> None:
        """Make waves."""
        steer, waves = self._planning.steer, self._waves
        avoid: Avoid = {}
        in_a_row = 0
        try:
            while in_a_row < ELSEWHERE:
                draft = waves.next_wave(avoid)
                if draft is None:
                    self._warn_of_over()
                    return
                wave = self._wave(draft)
                if closed := steer.closed(wave):
                    waves.close(closed)
                    continue
                avoid = wave.avoid
                placements = self._carry_out(wave)
                in_a_row = in_a_row + 1 if mostly_elsewhere(placements) else 0
            self._planning.evict.warn(cause(Code.LANDED_ELSEWHERE, waves=in_a_row))
        finally:
            steer.end()

    def _warn_of_over(self) -> None:
        evict = self._planning.evict
        for pod, deal in self._planning.offers.unworthy.items():
            why = why_relieved(self._sources[pod.node], self._ceilings, filling=False)
            if why.details["measured"] and deal.refusal and self._planning.cluster.contains(pod):
                evict.refuse(pod, why, deal.refusal)
        for each in staying_over(self._sources.values(), self._ceilings):
            evict.warn(each)

    def _wave(self, draft: Draft) -> Wave:
        moves: list[Move] = []
        with ExitStack() as undo:
            for offer in draft.offers:
                pod, usage = offer.candidate.pod, offer.candidate.usage
                shares = draft.shares.get(pod, {})
                likely = tuple(shares or draft.likely.get(pod, draft.destinations))
                moves.append(Move(pod, offer.destination, likely, self._made(offer, undo), usage, shares))
        return Wave(draft.avoid, tuple(moves))

    def _made(self, offer: Offer, undo: ExitStack) -> Cause:
        """Count a move in after the wave's earlier ones, and return why the pod goes, with the figures then."""
        points, usage, mean = offer.candidate.points, offer.candidate.usage, self._planning.mean
        source, peak = self._sources[offer.candidate.pod.node], self._planning.fullness.peaks[offer.destination]
        excess = source.above(self._ceilings)
        filling = not excess.points
        because = why_relieved(source, mean if filling else self._ceilings, filling=filling)
        undo.enter_context(source.exchanged([usage], ()))
        undo.enter_context(peak.exchanged((), [arriving(usage)]))
        relieved = excess.total - excess.left(points)
        lands_on = arrival(peak, arriving(usage), tuple(excess.points or mean))
        return with_pod_gone(because, points).with_details(relieved=relieved, lands_on=lands_on, **offer.deal.details)

    def _carry_out(self, wave: Wave) -> Sequence[ActualPlacement]:
        planning = self._planning
        planning.steer.begin(wave)
        moved: list[tuple[Move, Verdict]] = []
        for move in wave.moves:
            verdict = planning.evict(move.pod, move.because, move.destination)
            if verdict.leaving:
                planning.pool.lost(move.pod)
                moved.append((move, verdict))
            else:
                planning.pool.exclude(move.pod)
        placements = planning.steer.settle(wave, moved)
        for move in wave.moves:
            planning.foresight.worlds.landed(move.pod)
        for placement in placements:
            node = planning.cluster.node(placement.node) if placement.node else None
            if node is not None:
                planning.cluster.place(placement.move.pod, node)
        return placements


def mostly_elsewhere(placements: Sequence[ActualPlacement]) -> bool:
    """Return whether most replacements landed on other nodes than foreseen."""
    return sum(not each.foreseen for each in placements) * 2 > len(placements)
