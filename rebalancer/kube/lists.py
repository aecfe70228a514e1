"""Lists, page by page as bytes.

A list is read without a resourceVersion: its first page then shows the newest state, and the continue token keeps
the later pages on that state, so that all pages together show one consistent state.  `resourceVersion=0` would
be cheaper for the server, but may be stale and ignores the limit.  A token is valid for some minutes; when it has
expired (410), the list is read again from its first page.  The token that the 410 itself offers is not used: it
continues from a later state, so the pages would mix two states.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

from rebalancer.kube.answers import Expired, Rejected
from rebalancer.kube.client import LONGEST_READ_SECONDS, Client, path_of
from rebalancer.kube.tries import Deadline
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
        convert: makes of it what is kept in `items`.

    Attributes:
        more: how many objects are on the pages to come; None where the server does not say.
    """

    def __init__(self, kind: str, wire: type[W], convert: Callable[[W], T]) -> None:
        self.items: list[T] = []
        self.more: int | None = None
        self._kind = kind
        self._page = ListPage[wire]  # type: ignore[valid-type]  # a type at run time
        self._convert = convert

    def add_page(self, page: bytes) -> str:
        """Add one page; return its continue token, empty after the last page."""
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
    """Read a whole list, like `/api/v1/pods`, and return the collector that holds it.

    Each time the list is begun a new collector is made; it is shown to `after_page` after each page.  The deadline is
    for all pages together, and at most five minutes from now.  With a page size of 0 all is read at once.
    """
    until = Deadline.after(LONGEST_READ_SECONDS).or_sooner(deadline)
    for limit in (*[page_size] * (1 + RESTARTS), 0):
        try:
            collector = new_collector()
            asked = {**(query or {}), **({"limit": str(limit)} if limit else {})}
            _add_pages(client, path, collector, asked, until, after_page)
            return collector  # noqa: TRY300
        except Expired as error:
            logger.warning("reading %s again from its start: %s", path, error)
            expired = error
    raise expired


def _add_pages(
    client: Client,
    path: str,
    collector: CollectorT,
    query: dict[str, str],
    until: Deadline,
    after_page: Callable[[CollectorT], None],
) -> None:
    largest = LARGEST_PAGE if "limit" in query else LARGEST_FILE  # without a limit it is the whole list
    while True:
        token = collector.add_page(client.get(path, query, deadline=until, largest=largest))
        after_page(collector)
        if not token:
            return
        if token == query.get("continue"):
            raise Rejected(f"GET {path} gives the same page again and again: does a proxy leave the query out?")
        query["continue"] = token
