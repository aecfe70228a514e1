"""Which nodes may win for a pod while others are somewhere: by scores with few of them on a node, and with many.

From the scores level by level follow

- the best that a node may score, whatever is on it
- by how many of the others it takes at least to make a node score no more than a given figure, or to fill it.

A node may win only if the others can bring all nodes down to its best score, with no more of them than there are.

Example: n1 and n2 score 50 for a pod, n3 scores 49 and n4 40.  Another pod, which is on n1 or n2, brings either down to
45.  n1 and n2 may win.  For n3 to win both would have to be brought down, which takes two pods, and there is one.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from rebalancer.scheduling.ranges import BALANCE, RELATIVE, ROUNDING, peaks_of, settled
from rebalancer.scheduling.simulator.answer import Scores

#: Plugins whose score of a node changes with what is on that node, and with nothing else.
_OWN = frozenset((BALANCE, "NodeResourcesFit", "PodCapacityOfNode", "TargetLoadPacking"))
#: Plugins that compare nodes; their score of a node may come to nothing as others drop out.
_COMPARING = frozenset((*RELATIVE, "TaintToleration"))


@dataclass(frozen=True, slots=True)
class Level:
    """The scores with so many of the others on each node where they may be, or as many as may be there.

    Attributes:
        number: how many.
        scores: by name of the nodes that have room for the pod.
        swings: by node, how far the score of its balance may differ from the one without them.
    """

    number: int
    scores: Mapping[str, Scores]
    swings: Mapping[str, float]


class Contest:
    """Compares nodes.

    Args:
        levels: with none of the others first, and with all that may be there last.
        changing: the names of the nodes where they may be.
        others: how many there are.
        peaks: see `Phase.peaks`.
    """

    def __init__(
        self, levels: Sequence[Level], changing: Collection[str], others: int, peaks: Mapping[str, int]
    ) -> None:
        self._levels = levels
        self._alone, self._full = levels[0].scores, levels[-1].scores
        self._changing = changing
        self._others = others
        self._peaks = peaks

    def winners(self) -> set[str]:
        """Return the nodes that may win."""
        if not all(settled(plugin, self._alone, self._full) for plugin in RELATIVE):
            return set(self._alone)
        least = self._least()
        return {name for name in self._alone if self._best(name) >= least}

    def _least(self) -> float:
        """Return the lowest score to which the others can bring all nodes down together."""
        worst = [self._worst(name) for name in self._alone]
        numbers = [level.number for level in self._levels]

        def enough(bar: float) -> bool:
            return sum(_needed(scores, numbers, bar) for scores in worst) <= self._others

        bars = sorted({score for scores in worst for score in scores})
        return bars[bisect_left(bars, x=True, key=enough)]

    def _worst(self, name: str) -> list[float]:
        """Return the lowest score of a node level by level; one if nothing changes there."""
        alone = self._alone[name]
        rest = sum(self._compared(name, plugin) for plugin in alone if plugin not in _OWN)
        levels = self._levels if name in self._changing else self._levels[:1]
        return [rest + self._own(name, level) for level in levels]

    def _compared(self, name: str, plugin: str) -> int:
        """Return the lowest score that a plugin may give to a node as others drop out."""
        score = self._alone[name][plugin]
        if name in self._full:
            return min(score, self._full[name].get(plugin, 0))
        return 0 if plugin in _COMPARING else score

    def _own(self, name: str, level: Level) -> float:
        alone, scores = self._alone[name], level.scores.get(name)
        if scores is None:
            return -inf
        return sum(min(alone[each], scores[each]) for each in _OWN if each in alone) - _wobble(name, level, alone)

    def _best(self, name: str) -> float:
        alone = self._alone[name]
        known = [level.scores[name] for level in self._levels if name in level.scores]
        if name in self._changing:
            known.append(peaks_of(self._peaks, fills_up=name not in self._full))
        most = sum(max(each.get(plugin, 0) for each in known) for plugin in alone)
        return most + _wobble(name, self._levels[-1], alone)


def _wobble(name: str, level: Level, scores: Scores) -> float:
    swing = level.swings.get(name, 0.0)
    return swing + ROUNDING if swing and BALANCE in scores else 0.0


def _needed(worst: Sequence[float], numbers: Sequence[int], bar: float) -> float:
    """Return how many others it takes at least to bring a node down to a score, by its lowest score level by level."""
    level = next((level for level, score in enumerate(worst) if score <= bar), None)
    if level is None:
        return inf
    return numbers[level - 1] + 1 if level else 0
