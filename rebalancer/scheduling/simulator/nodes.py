"""Columns over the nodes of a cluster: a number for each node, or for each of some nodes, as an array.

A step of a plan asks the scheduler about all nodes, and each of a dozen plugins goes through all of them.  Arrays make
that a few microseconds for thousands of nodes.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import floor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

#: A whole number for each node, by index, or for each of some nodes in their order.
ByNode = NDArray[np.int64]
#: Whether something holds, for each of them.
Mask = NDArray[np.bool_]

S = TypeVar("S", bound=np.generic)

WHOLE = 100
_HALF = 0.5


class Nodes:
    """Indexes of nodes, sorted and not changed any more.

    Attributes:
        indexes: the same as an array.
    """

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

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a column of these nodes."""
        return (len(self),)

    def listed(self, column: NDArray[S]) -> Sequence[Any]:
        """Return the entries of a column of these nodes as numbers."""
        return column.tolist()  # type: ignore[no-any-return]

    def without(self, gone: Mask) -> "Nodes":
        """Return those that are not gone, by index of the node; the same object if that are all."""
        left = self.indexes[~self.of(gone)]
        return self if len(left) == len(self) else Nodes(left)

    def among(self, count: int) -> Mask:
        """Return for each of so many nodes whether it is one of these."""
        found = np.zeros(count, dtype=np.bool_)
        found[self.indexes] = True
        return found


class OneNode(Nodes):
    """One node, of which a column is a number: Python adds numbers ten times as fast as numpy adds short arrays."""

    __slots__ = ("_index",)
    shape = ()

    def __init__(self, index: int) -> None:
        self._index = index

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[int]:
        return iter((self._index,))

    def of(self, column: NDArray[S]) -> NDArray[S]:
        """Return the entry of the node."""
        found: NDArray[S] = column.item(self._index)
        return found

    def listed(self, column: NDArray[S]) -> Sequence[Any]:
        """Return the number that a column of this node is."""
        return (column,)


def rounded(value: float) -> int:
    """Return the nearest whole number, halves away from zero, for values that are not negative."""
    whole = floor(value)
    return whole + (value - whole >= _HALF)


def scaled(scores: ByNode, *, reverse: bool = False) -> ByNode:
    """Return scores, none of them negative, so that the highest is 100, or 0 if reversed; if it is 0, so are all."""
    points = WHOLE * scores // max(int(scores.max()), 1)
    return WHOLE - points if reverse else points
