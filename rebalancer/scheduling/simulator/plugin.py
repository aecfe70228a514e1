"""The interface of the simulated scheduler plugins, and the columns over the nodes of a cluster that they answer with.

A column is a number for each node, or for each of some nodes, as an array: a dozen plugins go through thousands.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rebalancer.cluster.pod import Pod

#: A whole number for each node, by index, or for each of some nodes in their order.
ByNode = NDArray[np.int64]
#: Whether something holds, for each of them.
Mask = NDArray[np.bool_]

S = TypeVar("S", bound=np.generic)

WHOLE = 100
_HALF = 0.5


class Nodes:
    """Indexes of nodes, sorted and not changed any more."""

    __slots__ = ("indexes",)

    def __init__(self, indexes: "Iterable[int] | NDArray[np.intp]") -> None:
        self.indexes: NDArray[np.intp] = np.asarray(indexes, dtype=np.intp)

    def __len__(self) -> int:
        return len(self.indexes)

    def __iter__(self) -> Iterator[int]:
        return iter(self.indexes.tolist())

    def of(self, column: NDArray[S]) -> NDArray[S]:
        """Return the entries of these nodes in their order; the column itself if these are all nodes."""
        return column if len(self) == len(column) else column.take(self.indexes)

    def without(self, gone: Mask) -> "Nodes":
        """Return those that are not gone, by index of the node; the same object if that are all."""
        left = self.indexes[~self.of(gone)]
        return self if len(left) == len(self) else Nodes(left)

    def among(self, count: int) -> Mask:
        """Return for each of so many nodes whether it is one of these."""
        found = np.zeros(count, dtype=np.bool_)
        found[self.indexes] = True
        return found


def rounded(values: "NDArray[np.float64] | float") -> ByNode:
    """Return the nearest whole numbers, halves away from zero, for values that are not negative."""
    whole = np.floor(values)
    found: ByNode = (whole + (values - whole >= _HALF)).astype(np.int64)
    return found


def scaled(scores: ByNode, *, reverse: bool = False) -> ByNode:
    """Return scores, none of them negative, so that the highest is 100, or 0 if reversed; if it is 0, so are all."""
    points = WHOLE * scores // max(int(scores.max()), 1)
    return WHOLE - points if reverse else points


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
        """Return which of these nodes the plugin refuses, and why; others may be refused as well.  None for none."""
        ...


@runtime_checkable
class Score(Protocol):
    """Scores nodes."""

    name: str

    def scores(self, pod: Pod, nodes: Nodes, /) -> ByNode | None:
        """Return a score for each of these nodes, 0 to 100, in their order; None if it does not score this pod."""
        ...


class PodUnschedulableError(Exception):
    """A plugin refuses the pod before it looks at any node; the message is the scheduler's."""


class UnknownPlacementError(Exception):
    """It is not known where the pod would go, since something was not read; the message says why."""
