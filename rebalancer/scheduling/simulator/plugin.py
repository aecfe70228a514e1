"""The interface of the simulated scheduler plugins."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.simulator.nodes import ByNode, Mask, Nodes

#: Why a plugin refuses a node, in the scheduler's words.
Reasons = tuple[str, ...]


class Refusals(NamedTuple):
    """The nodes that a plugin refuses, by index, and a function for the reasons, which are seldom needed."""

    gone: Mask
    why: Callable[[int], Reasons]

    @classmethod
    def of(cls, found: Mapping[int, Reasons], count: int) -> "Refusals | None":
        """Return the refusals of these nodes, out of so many; None if there are none."""
        return cls(Nodes(list(found)).among(count), found.__getitem__) if found else None

    @classmethod
    def joined(cls, found: "Iterable[tuple[Mask, Reasons]]") -> "Refusals | None":
        """Return what is refused for one of several reasons; the first one that a node is refused for counts."""
        reasons = [(gone, why) for gone, why in found if gone.any()]
        if not reasons:
            return None
        gone = np.logical_or.reduce([gone for gone, _ in reasons])
        return cls(gone, lambda index: next(why for gone, why in reasons if gone[index]))


@runtime_checkable
class Filter(Protocol):
    """Refuses nodes."""

    name: str

    def refusals(self, pod: Pod, nodes: Nodes, /) -> Refusals | None:
        """Return which of these nodes the plugin refuses, and why; others may be refused as well.  None for none.

        Raises:
            UnknownPlacementError: what the answer depends on was not read.
        """
        ...


@runtime_checkable
class Score(Protocol):
    """Scores nodes."""

    name: str

    def scores(self, pod: Pod, nodes: Nodes, /) -> ByNode | None:
        """Return a score for each of these nodes, 0 to 100, in their order; None if it does not score this pod.

        Raises:
            UnknownPlacementError: what the answer depends on was not read.
        """
        ...


class PodUnschedulableError(Exception):
    """A plugin refuses the pod before it looks at any node; the message is the scheduler's."""


class UnknownPlacementError(Exception):
    """It is not known where the pod would go; the message says why."""
