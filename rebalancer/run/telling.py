"""Reports how much of a list was read, page by page."""

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

#: Called with each page: the resource, like `pods`, the objects so far, and how many are to come if the server says so.
Tell = Callable[[str, int, int | None], None]


def tell_nobody(_resource: str, _count: int, _more: int | None) -> None:
    """Report nothing."""


class Counted(Protocol):
    """Collects a list, page by page."""

    more: int | None

    @property
    def items(self) -> Sequence[object]:
        """The objects so far."""
        ...

    def add_page(self, page: bytes) -> str:
        """Take one page in; return its continue token, empty after the last page."""
        ...


C = TypeVar("C", bound=Counted)


class Telling(Generic[C]):
    """Collects a list with another collector, and reports each page.

    Args:
        collector: the other one.
        path: where the list is, like `/api/v1/pods`.
        tell: called with each page.
    """

    def __init__(self, collector: C, path: str, tell: Tell) -> None:
        self.collector = collector
        self._resource = path.rpartition("/")[2]
        self._tell = tell

    def add_page(self, page: bytes) -> str:
        """Take one page in; return its continue token, empty after the last page."""
        token = self.collector.add_page(page)
        self._tell(self._resource, len(self.collector.items), self.collector.more)
        return token
