"""Which nodes may win if scores are known only within ranges: from the best case of a cluster to its worst.

A pod is asked about twice: in the emptiest state that may be, and in the fullest.  What lies between is bounded, plugin
by plugin:

1. NodeResourcesFit goes one way as a node fills up, so the two scores are the bounds.  With a shape that it reads
   scores off (RequestedToCapacityRatio) it may go up and down: where pods come or go it may be anything.
2. NodeResourcesBalancedAllocation does not.  But a share of a resource that grows by a point moves the score by a point
   at most, so the bounds are that much wider.
3. TargetLoadPacking rises to a target and then falls, so where something may come to a node its peak is a bound.
4. Other plugins score nodes by what is the highest and the lowest of all feasible nodes.  With fewer nodes feasible in
   the fullest state, the highest or the lowest may change.  Where only one of them does, scores go one way, so the two
   scores are the bounds; where both do, nothing is known of that plugin.

A node may win if its upper bound is at least the lower bound of every node that is feasible in any case.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rebalancer.scheduling.simulator.answer import Answer, Scores
from rebalancer.scheduling.simulator.arithmetic import WHOLE

BALANCE, FIT = "NodeResourcesBalancedAllocation", "NodeResourcesFit"
#: Rounding down in each of the steps of its score.
ROUNDING = 2.0
#: Plugins whose scores are relative to the other feasible nodes, and that give the best of them 100.
RELATIVE = ("NodeAffinity", "PodTopologySpread", "InterPodAffinity")


@dataclass(frozen=True, slots=True)
class Extremes:
    """One pod, asked about in two states of the cluster.

    Attributes:
        emptiest: the answer where as little is taken of every node as may be.
        fullest: where as much is taken as may be; the same rules between pods hold.
        swings: by node, by how much the share of a resource differs between the two, in points, times the weight of
            NodeResourcesBalancedAllocation; nodes where none differs may be left out.
        peaks: by node to which something may come, see `Phase.peaks`.
        wavering: the weight of NodeResourcesFit if its score may go up and down as a node fills up, else 0.
    """

    emptiest: Answer
    fullest: Answer
    swings: Mapping[str, float]
    peaks: Mapping[str, Scores] = field(default_factory=dict)
    wavering: int = 0

    def winners(self) -> frozenset[str]:
        """Return all nodes that may win in a state between the two."""
        sure, maybe = set(self.fullest.feasible_nodes()), self.emptiest.feasible_nodes()
        high = {name: self.emptiest.scores(name) for name in maybe}
        low = {name: self.fullest.scores(name) for name in maybe if name in sure}
        unsettled = [each for each in RELATIVE if not settled(each, high, low)]
        if unsettled:
            return frozenset(maybe)
        least = max((self._bound(name, high[name], low[name], -1) for name in low), default=float("-inf"))
        return frozenset(name for name in maybe if self._bound(name, high[name], low.get(name), 1) >= least)

    def _bound(self, name: str, high: Scores, low: Scores | None, sign: int) -> float:
        known = [high] if low is None else [high, low]
        if sign > 0:
            known.append(peaks_of(self.peaks.get(name, {}), fills_up=low is None))
        if self.wavering and name in self.swings:
            known.append({**known[-1], FIT: WHOLE * self.wavering if sign > 0 else 0})
        total = 0.0
        for plugin in high.keys() | (low or {}).keys():
            found = [each.get(plugin, 0) for each in known]
            total += max(found) if sign > 0 else min(found)
        return total + sign * self._wobble(name, high)

    def _wobble(self, name: str, scores: Scores) -> float:
        swing = self.swings.get(name, 0.0)
        return swing + ROUNDING if swing and BALANCE in scores else 0.0


def peaks_of(peaks: Scores, *, fills_up: bool) -> Scores:
    """Return which of a node's peaks lie above its scores in both states, as far as that can be.

    NodeResourcesFit may only rise, if pods are packed: then the fullest state has the highest score, as long as the
    node has room for the pod in it.
    """
    return peaks if fills_up else {plugin: most for plugin, most in peaks.items() if plugin != FIT}


def settled(plugin: str, high: Mapping[str, Scores], low: Mapping[str, Scores]) -> bool:
    """Return whether the nodes that may drop out change the highest or the lowest at most, and not what decides.

    The best of NodeAffinity, and the lowest and the highest of the others, are feasible in any case.
    """
    if len(high) == len(low):
        return True
    scores = {name: each.get(plugin, 0) for name, each in high.items()}
    best, worst = max(scores.values()), min(scores.values())
    if best == worst:
        return True
    kept = [scores[name] for name in low]
    return max(kept, default=-1) == best and (plugin != "InterPodAffinity" or min(kept) == worst)
