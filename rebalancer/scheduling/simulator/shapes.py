"""Answers by node for pods that request the same, brought up to date only where pods came or went."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.simulator.state import State, scored_of

T = TypeVar("T")


class _Known(Generic[T]):
    """Answers by node, and how many changes of the state they reflect."""

    __slots__ = ("answers", "seen")

    def __init__(self, answers: list[T], seen: int) -> None:
        self.answers = answers
        self.seen = seen


class Shapes(Generic[T]):
    """Answers of one question, which goes by the pod's requests and the node alone."""

    def __init__(self, state: State, ask: Callable[[Pod, int], T]) -> None:
        self._state = state
        self._ask = ask
        self._known: dict[object, _Known[T]] = {}

    def by_node(self, pod: Pod) -> Sequence[T]:
        """Return the answers for a pod, by index of the node."""
        key = _shape(pod)
        known = self._known.get(key)
        changes = self._state.changes
        if known is None:
            answers = [self._ask(pod, index) for index in range(len(self._state.nodes))]
            known = self._known[key] = _Known(answers, len(changes))
        elif known.seen < len(changes):
            for index in set(changes[known.seen :]):
                known.answers[index] = self._ask(pod, index)
            known.seen = len(changes)
        return known.answers


def _shape(pod: Pod) -> object:
    return frozenset(pod.spec.requests.items()), frozenset(scored_of(pod).items())
