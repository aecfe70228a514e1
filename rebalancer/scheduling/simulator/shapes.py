"""Answers by node for pods that are alike to a plugin, brought up to date only where pods came or went."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.simulator.nodes import Nodes
from rebalancer.scheduling.simulator.state import State, scored_of

T = TypeVar("T")


class _Known(Generic[T]):
    """Answers by node, and how many changes of the state they reflect."""

    __slots__ = ("answers", "seen")

    def __init__(self, answers: list[T], seen: int) -> None:
        self.answers = answers
        self.seen = seen


def requested(pod: Pod) -> object:
    """Return what is equal for pods that request the same."""
    return frozenset(pod.spec.requests.items()), frozenset(scored_of(pod).items())


class Shapes(Generic[T]):
    """Answers to one question that depends only on the shape of the pod and the node.

    Args:
        state: the cluster.
        ask: answers for a pod and some nodes, in their order.
        shape: returns what is equal for pods with equal answers.
    """

    def __init__(
        self,
        state: State,
        ask: Callable[[Pod, Nodes], list[T]],
        shape: Callable[[Pod], object] = requested,
    ) -> None:
        self._state = state
        self._ask = ask
        self._shape = shape
        self._known: dict[object, _Known[T]] = {}

    def by_node(self, pod: Pod) -> Sequence[T]:
        """Return the answers for a pod, by index of the node."""
        key = self._shape(pod)
        known = self._known.get(key)
        changes = self._state.changes
        if known is None:
            everywhere = Nodes(range(len(self._state.nodes)))
            known = self._known[key] = _Known(self._ask(pod, everywhere), len(changes))
        elif known.seen < len(changes):
            changed = Nodes(sorted(set(changes[known.seen :])))
            for index, answer in zip(changed, self._ask(pod, changed), strict=True):
                known.answers[index] = answer
            known.seen = len(changes)
        return known.answers

    def of(self, pod: Pod, nodes: Nodes) -> Sequence[T]:
        """Return the answers for a pod and some nodes, in their order, as they are now."""
        return tuple(nodes.of(self.by_node(pod)))
