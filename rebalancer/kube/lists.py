"""Lists, page by page as bytes.

A list is read without a resourceVersion: its first page then shows the newest state, and the continue token keeps
the later pages on that state, so that all pages together show one consistent state.  `resourceVersion=0` would
be cheaper for the server, but may be stale and ignores the limit.  A token is valid for some minutes; when it has
expired (410), the list is read again from its first page.  The token that the 410 itself offers is not used: it
continues from a later state, so the pages would mix two states.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

from rebalancer.kube.answers import Expired
from rebalancer.kube.client import LONGEST_READ_SECONDS, Client, path_of
from rebalancer.kube.halt import Deadline
from rebalancer.kube.wire.pages import PATHS, ListPage, items_of
from rebalancer.untrusted.documents import LARGEST_FILE, LARGEST_PAGE, decode_json

logger = logging.getLogger(__name__)

#: kubectl's page size.
PAGE_SIZE = 500

#: How often a list is begun again after a 410, before it is read in one piece.
RESTARTS = 2


def path_within(kind: str, namespace: str) -> str:
    """Return where a kind is listed in one namespace: `/apis/apps/v1/namespaces/shop/replicasets`."""
    root, _, plural = PATHS[kind].rpartition("/")
    return root + path_of("namespaces", namespace, plural)


class PageCollector(Protocol):
    """Collects a list, page by page."""

    def add_page(self, page: bytes) -> str:
        """Add one page; return its continue token, empty after the last page."""


CollectorT = TypeVar("CollectorT", bound=PageCollector)
W = TypeVar("W")
T = TypeVar("T")

#: Told of a list that is read: its resource, how many objects were read so far, and how many are to follow if known.
Tell = Callable[[str, int, int | None], None]


class Items(Generic[W, T]):
    """Collects the objects of one kind, page by page; one that cannot be read is an error.

    Args:
        kind: as documents spell it.
        wire: what an object is decoded as.
        convert: makes of it what is kept.

    Attributes:
        items: what is kept.
        more: how many objects are on the pages to come; None where the server does not say.
    """

    def __init__(self, kind: str, wire: type[W], convert: Callable[[W], T]) -> None:
        self.items: list[T] = []
        self.more: int | None = None
        self._kind = kind
        self._page = ListPage[wire]  # type: ignore[valid-type]  # a type at run time
        self._convert = convert

    def add_page(self, page: bytes) -> str:
        """Add one page; return its continue token, empty after the last page.

        Raises:
            ValueError: it is not a page of a list of this kind.
        """
        decoded = decode_json(page, self._page)
        self.items += map(self._convert, items_of(decoded, self._kind))
        self.more = decoded.metadata.remaining_item_count
        return decoded.token


def read_list(
    client: Client,
    path: str,
    new_collector: Callable[[], CollectorT],
    *,
    page_size: int = PAGE_SIZE,
    query: Mapping[str, str] | None = None,
    deadline: Deadline | None = None,
    after_page: Callable[[CollectorT], None] = lambda _: None,
) -> CollectorT:
    """Read a whole list and return the collector that holds it.

    Args:
        client: the API server.
        path: of the collection, like `/api/v1/pods`.
        new_collector: makes an empty collector; called again when the list is begun again.
        page_size: objects per page; 0 reads all at once.
        query: selectors and the like.
        deadline: for all pages together; at most five minutes from now.
        after_page: called with the collector after each page.

    Raises:
        ClusterError: as `Client.get`.
    """
    until = Deadline.after(LONGEST_READ_SECONDS).or_sooner(deadline)
    for limit in (*[page_size] * (1 + RESTARTS), 0):
        try:
            collector = new_collector()
            for _ in _pages(client, path, collector, {**(query or {}), **_limited(limit)}, until):
                after_page(collector)
            return collector  # noqa: TRY300
        except Expired as error:
            logger.warning("reading %s again from its start: %s", path, error)
            expired = error
    raise expired


def _limited(limit: int) -> dict[str, str]:
    return {"limit": str(limit)} if limit else {}


def _pages(
    client: Client, path: str, collector: PageCollector, query: Mapping[str, str], until: Deadline
) -> Iterator[None]:
    """Add the pages to the collector one by one."""
    largest = LARGEST_PAGE if "limit" in query else LARGEST_FILE  # without a limit it is the whole list
    token = ""
    while True:
        following = {"continue": token} if token else {}
        token = collector.add_page(client.get(path, {**query, **following}, deadline=until, largest=largest))
        yield
        if not token:
            return
