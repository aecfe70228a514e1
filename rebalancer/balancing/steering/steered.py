"""Carries steering out: wave by wave, each planned on where the replacements of the one before really landed."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from rebalancer.balancing.cause_details import arrival, why_relieved, with_pod_gone
from rebalancer.balancing.relief import staying_over
from rebalancer.balancing.steering.foresight import Avoid
from rebalancer.balancing.steering.offers import Draft, Offer, Planning
from rebalancer.balancing.steering.waves import Waves
from rebalancer.balancing.utilization import Percentages
from rebalancer.cluster.resources import arriving
from rebalancer.eviction.causes import Cause, Code, cause
from rebalancer.eviction.steering import ActualPlacement, Move, Steer, Wave
from rebalancer.eviction.verdict import Verdict

#: Steering ends after so many waves in a row that mostly landed on other nodes than foreseen.
ELSEWHERE = 2


@dataclass(frozen=True, slots=True)
class Steered:
    """Makes waves until no move pays, or until replacements land on other nodes than foreseen.

    Above the ceilings that waves are planned with a node should lose pods; the mean is that of all nodes.
    """

    planning: Planning
    steer: Steer
    waves: Waves
    mean: Percentages

    def run(self) -> None:
        """Make waves."""
        avoid: Avoid = {}
        in_a_row = 0
        try:
            while in_a_row < ELSEWHERE:
                draft = self.waves.next_wave(avoid)
                if draft is None:
                    self._warn_of_over()
                    return
                wave = self._wave(draft)
                if closed := self.steer.closed(wave):
                    self.waves.close(closed)
                    continue
                avoid = wave.avoid
                placements = self._carry_out(wave)
                in_a_row = in_a_row + 1 if mostly_elsewhere(placements) else 0
            self.planning.evict.warn(cause(Code.LANDED_ELSEWHERE, waves=in_a_row))
        finally:
            self.steer.end()

    def _warn_of_over(self) -> None:
        for pod, deal in self.planning.offers.unworthy.items():
            why = why_relieved(self.planning.fullness.sources[pod.node], self.planning.ceilings, filling=False)
            if why.details["measured"] and deal.refusal and self.planning.cluster.contains(pod):
                self.planning.evict.refuse(pod, why, deal.refusal)
        for each in staying_over(self.planning.fullness.sources.values(), self.planning.ceilings):
            self.planning.evict.warn(each)

    def _wave(self, draft: Draft) -> Wave:
        moves: list[Move] = []
        with ExitStack() as undo:
            for offer in draft.offers:
                pod, usage = offer.candidate.pod, offer.candidate.usage
                shares = draft.shares.get(pod, {})
                likely = tuple(shares) or draft.destinations
                moves.append(Move(pod, offer.destination, likely, self._made(offer, undo), usage, shares))
        return Wave(draft.avoid, tuple(moves))

    def _made(self, offer: Offer, undo: ExitStack) -> Cause:
        """Count a move in after the wave's earlier ones, and return why the pod goes, with the figures then."""
        pod, points, usage = offer.candidate.pod, offer.candidate.points, offer.candidate.usage
        source, peak = self.planning.fullness.sources[pod.node], self.planning.fullness.peaks[offer.destination]
        excess = source.above(self.planning.ceilings)
        edges = self.planning.ceilings if excess.points else self.mean
        because = why_relieved(source, edges, filling=not excess.points)
        relieved = excess.total - excess.left(points)
        undo.enter_context(source.exchanged([usage], ()))
        undo.enter_context(peak.exchanged((), [arriving(usage)]))
        lands_on = arrival(peak, arriving(usage), tuple(excess.points or self.mean))
        return with_pod_gone(because, points).with_details(relieved=relieved, lands_on=lands_on, **offer.deal.figures)

    def _carry_out(self, wave: Wave) -> Sequence[ActualPlacement]:
        self.steer.begin(wave)
        moved: list[tuple[Move, Verdict]] = []
        for move in wave.moves:
            verdict = self.planning.evict(move.pod, move.because, move.destination)
            if verdict.leaving:
                self.planning.pool.lost(move.pod)
                moved.append((move, verdict))
            else:
                self.planning.pool.exclude(move.pod)
        placements = self.steer.settle(wave, moved)
        for move in wave.moves:
            self.planning.foresight.worlds.landed(move.pod)
        for placement in placements:
            node = self.planning.cluster.node(placement.node) if placement.node else None
            if node is not None:
                self.planning.cluster.place(placement.move.pod, node)
        return placements


def mostly_elsewhere(placements: Sequence[ActualPlacement]) -> bool:
    """Return whether most replacements landed on other nodes than foreseen."""
    return sum(not each.foreseen for each in placements) * 2 > len(placements)
