"""Some nodes of the cluster, of which entries of many columns are picked."""

from collections.abc import Callable, Container, Sequence
from functools import cached_property
from itertools import filterfalse
from operator import itemgetter
from typing import Any, TypeVar

T = TypeVar("T")


class Nodes(list[int]):
    """Indexes of nodes, sorted and not changed any more.

    Up to ten columns are picked for the same nodes: scores, labels, names.  The way to pick is made once and kept; that
    takes a third of the time of a list comprehension for each column.
    """

    def of(self, column: Sequence[T]) -> Sequence[T]:
        """Return the entries of these nodes in their order; the column itself if these are all nodes."""
        if len(self) == len(column):
            return column
        return self._picking(column) if len(self) > 1 else [column[index] for index in self]

    def without(self, gone: Container[int]) -> "Nodes":
        """Return those that are not gone; the same object if that are all."""
        kept = Nodes(filterfalse(gone.__contains__, self))
        return self if len(kept) == len(self) else kept

    @cached_property
    def _picking(self) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
        return itemgetter(*self)
