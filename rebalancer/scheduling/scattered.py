"""Which nodes may win while each of some pods is on one of several nodes, and nobody knows on which.

The pod is asked about with none of them anywhere, then with some of them on each node where they may be, then with all
(see `rebalancer.scheduling.heaps`).  What follows from the scores is in `rebalancer.scheduling.contest`.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.contest import Contest, Level
from rebalancer.scheduling.heaps import heap
from rebalancer.scheduling.phase import Phase
from rebalancer.scheduling.ranges import BALANCE
from rebalancer.scheduling.simulator.answer import Answer, Scores
from rebalancer.scheduling.simulator.arithmetic import WHOLE

#: Which multiples of the share are tried.
_TIMES = (1, 2, 3, 5)


@dataclass(frozen=True, slots=True)
class Scattered:
    """A pod that is on one of several nodes.

    Attributes:
        pod: the pod.
        nodes: the names of these nodes.
        blocks: whether it may keep the pod in question from a node altogether, by a port for example.
    """

    pod: Pod
    nodes: Sequence[str]
    blocks: bool = False


class Winners:
    """Works out which nodes may win for one pod.

    Args:
        phase: the cluster, without the scattered pods.
        pod: the pod.
        scattered: the pods that are somewhere.
    """

    def __init__(self, phase: Phase, pod: Pod, scattered: Sequence[Scattered]) -> None:
        self._phase = phase
        self._pod = pod
        self._count = len(scattered)
        self._on: defaultdict[str, list[Scattered]] = defaultdict(list)
        for each in scattered:
            for name in each.nodes:
                self._on[name].append(each)
        self._balance = WHOLE * phase.weight(pod, BALANCE)
        self._peaks = phase.peaks(pod)
        self._heaps: dict[tuple[int, ...], Pod] = {}

    def names(self, asks: Sequence[Callable[[], Answer]]) -> set[str]:
        """Return the nodes that win in some case; where a part of the nodes is scored, those without the others.

        Args:
            asks: for each case, what asks about the pod then.
        """
        empty = [ask() for ask in asks]
        fuller = [(most, *self._filled(most, asks)) for most in self._numbers()]
        found: set[str] = set()
        for case, answer in enumerate(empty):
            if answer.sampled or not answer.nodes or not fuller:
                found.update(answer.likely)
                continue
            levels = [Level(0, _scores(answer), {})]
            levels += [Level(most, _scores(answers[case]), swings) for most, answers, swings in fuller]
            found |= Contest(levels, frozenset(self._on), self._count, self._peaks).winners()
        return found

    def _numbers(self) -> list[int]:
        """Return how many pods are put on each node: its share if all are to be brought down, multiples of it, and all.

        That tells as a rule whether they are enough, and each number takes another question for each case.  Measured
        (`tests/outcome/simulation.py`, `half`, seeds 201 to 206): with double and fivefold there are 72 evictions in
        the first cycle and 101 in all.  Without these it is 60 and 97: the set is wider, so more pods stay.
        """
        if not self._on:
            return []
        most, share = max(map(len, self._on.values())), self._count // len(self._on)
        return sorted({min(max(each, 1), most) for each in (*(times * share for times in _TIMES), most)})

    def _filled(self, most: int, asks: Sequence[Callable[[], Answer]]) -> tuple[list[Answer], dict[str, float]]:
        """Return the answers with so many pods on each node, and by how many points balance may differ then."""
        with ExitStack() as undo:
            swings = {name: self._fill(undo, name, most) for name in self._on}
            return [ask() for ask in asks], swings

    def _fill(self, undo: ExitStack, name: str, most: int) -> float:
        """Put pods on a node, and return by how many points that may change the score of its balance."""
        before, there = self._phase.shares(name), self._on[name]
        blocking = [each.pod for each in there if each.blocks]
        for pod in (self._heap(there, min(most, len(there))), *blocking):
            self._phase.exchange(name, None, pod)
            undo.callback(self._phase.exchange, name, pod, None)
        after = self._phase.shares(name)
        return self._balance * max((abs(after[each] - before.get(each, 0.0)) for each in after), default=0.0)

    def _heap(self, there: Sequence[Scattered], number: int) -> Pod:
        key = (number, *map(id, there))
        if key not in self._heaps:
            self._heaps[key] = heap([each.pod for each in there], number)
        return self._heaps[key]


def _scores(answer: Answer) -> dict[str, Scores]:
    return {name: answer.scores(name) for name in answer.feasible_nodes()}
