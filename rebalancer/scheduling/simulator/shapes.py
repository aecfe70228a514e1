"""Answers by node for pods that are alike to a plugin, brought up to date only where pods came or went."""

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.simulator.nodes import Nodes, OneNode
from rebalancer.scheduling.simulator.state import State

S = TypeVar("S", bound=np.generic)

#: So many nodes are asked about one by one.
_FEW = 8


class Shapes(Generic[S]):
    """Answers to one question that depends only on the shape of the pod and the node.

    Args:
        state: the cluster.
        ask: answers for a pod and some nodes, in their order, or for one of them.
        shape: returns what is equal for pods with equal answers; by default what they request.
    """

    def __init__(
        self,
        state: State,
        ask: Callable[[Pod, Nodes], NDArray[S]],
        shape: Callable[[Pod], object] | None = None,
    ) -> None:
        self._state = state
        self._ask = ask
        self._shape = shape or (lambda pod: state.requested.of(pod.spec))
        self._known: dict[object, tuple[NDArray[S], int]] = {}  # and how many changes of the state they reflect

    def by_node(self, pod: Pod) -> NDArray[S]:
        """Return the answers for a pod, by index of the node; they follow the cluster, so others must not keep them."""
        key, changes = self._shape(pod), self._state.changes
        answers, seen = self._known.get(key, (None, 0))
        if answers is None:
            answers = self._ask(pod, self._state.everywhere)
        elif seen < len(changes):
            changed = sorted(set(changes[seen:]))
            if len(changed) > _FEW:
                answers[changed] = self._ask(pod, Nodes(changed))
            else:
                for index in changed:
                    answers[index] = self._ask(pod, OneNode(index))
        else:
            return answers
        self._known[key] = answers, len(changes)
        return answers

    def of(self, pod: Pod, nodes: Nodes) -> NDArray[S]:
        """Return the answers for a pod and some nodes, in their order, as they are now."""
        return self.by_node(pod).take(nodes.indexes)
