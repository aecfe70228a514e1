"""Lists, page by page as bytes.

A list is read without a resourceVersion: its first page then shows the newest state, and the continue token keeps
the later pages on that state, so that all pages together show one consistent state.  `resourceVersion=0` would
be cheaper for the server, but may be stale and ignores the limit.  A token is valid for some minutes; when it has
expired (410), the list is read again from its first page.  The token that the 410 itself offers is not used: it
continues from a later state, so the pages would mix two states.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from rebalancer.kube.answers import Expired
from rebalancer.kube.client import LONGEST_READ_SECONDS, Client
from rebalancer.kube.deadline import Deadline
from rebalancer.untrusted.documents import LARGEST_FILE, LARGEST_PAGE

logger = logging.getLogger(__name__)

#: kubectl's page size.
PAGE_SIZE = 500

#: How often a list is begun again after a 410, before it is read in one piece.
RESTARTS = 2


class PageCollector(Protocol):
    """Collects a list, page by page."""

    def add_page(self, page: bytes) -> str:
        """Add one page; return its continue token, empty after the last page."""


CollectorT = TypeVar("CollectorT", bound=PageCollector)


def read_list(
    client: Client,
    path: str,
    new_collector: Callable[[], CollectorT],
    *,
    page_size: int = PAGE_SIZE,
    query: Mapping[str, str] | None = None,
    deadline: Deadline | None = None,
) -> CollectorT:
    """Read a whole list and return the collector that holds it.

    Args:
        client: the API server.
        path: of the collection, like `/api/v1/pods`.
        new_collector: makes an empty collector; called again when the list is begun again.
        page_size: objects per page; 0 reads all at once.
        query: selectors and the like.
        deadline: for all pages together; at most five minutes from now.

    Raises:
        ClusterError: as `Client.get`.
    """
    until = Deadline.after(LONGEST_READ_SECONDS).or_sooner(deadline)
    for limit in (*[page_size] * (1 + RESTARTS), 0):
        try:
            return _read_pages(client, path, new_collector(), {**(query or {}), **_limited(limit)}, until)
        except Expired as error:
            logger.warning("reading %s again from its start: %s", path, error)
            expired = error
    raise expired


def _limited(limit: int) -> dict[str, str]:
    return {"limit": str(limit)} if limit else {}


def _read_pages(
    client: Client, path: str, collector: CollectorT, query: Mapping[str, str], until: Deadline
) -> CollectorT:
    largest = LARGEST_PAGE if "limit" in query else LARGEST_FILE  # without a limit it is the whole list
    token = collector.add_page(client.get(path, query, deadline=until, largest=largest))
    while token:
        token = collector.add_page(client.get(path, {**query, "continue": token}, deadline=until, largest=largest))
    return collector
