"""Lists, page by page as bytes.

A list is read without a resourceVersion: its first page shows the newest state, and the continue token keeps the later
pages on it.  `resourceVersion=0` would be cheaper for the server, but may be stale and ignores the limit.  When a token
has expired (410), the list is read again from its first page: the token that the 410 offers would mix two states.

A server takes as long for a page as decoding does, so the next page is asked for before the present one is decoded.
"""

import logging
import re
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from http import HTTPStatus
from typing import Protocol, TypeVar

import msgspec

from rebalancer.errors import ClusterError
from rebalancer.kube.answers import Expired, HttpAnswer, Rejected, Transient
from rebalancer.kube.client import LONGEST_READ_SECONDS, Client, path_of
from rebalancer.kube.tries import Deadline
from rebalancer.kube.wire.pages import MALFORMED, PATHS, PageMetadata
from rebalancer.untrusted.documents import LARGEST_FILE, LARGEST_PAGE, in_words

logger = logging.getLogger(__name__)
PAGE_SIZE = 500  # kubectl's page size
RESTARTS = 2  # how often a list is begun again after a 410, before it is read in one piece


def path_within(kind: str, namespace: str) -> str:
    """Return where a kind is listed in one namespace: `/apis/apps/v1/namespaces/shop/replicasets`."""
    root, _, plural = PATHS[kind].rpartition("/")
    return root + path_of("namespaces", namespace, plural)


class PageCollector(Protocol):
    """Collects a list."""

    def add_page(self, page: bytes) -> str:
        """Add one page; return its continue token, empty after the last page."""


CollectorT = TypeVar("CollectorT", bound=PageCollector)
#: Told of a list that is read: its resource, how many objects were read so far, and how many are to follow if known.
Tell = Callable[[str, int, int | None], None]


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

    Each time the list is begun a new collector is made; it is shown to `after_page`.  The deadline is for all pages,
    and at most five minutes from now.  With a page size of 0 all is read at once.
    """
    until = Deadline.after(LONGEST_READ_SECONDS).or_sooner(deadline)
    for limit in (*[page_size] * (1 + RESTARTS), 0):
        collector = new_collector()
        asked = {**(query or {}), **({"limit": str(limit)} if limit else {})}
        try:
            _add_pages(client, path, collector, asked, until, after_page)
            return collector  # noqa: TRY300
        except Expired as error:
            logger.warning("reading %s again from its start: %s", path, error)
            expired = error
        except MALFORMED as error:
            raise ClusterError(
                f"{client.connection.server} does not answer like an API server: GET {path} gives no list of objects "
                f"({in_words(error)}). Look at the server's address in the kubeconfig."
            ) from error
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
    asked, page = "", client.get(path, query, deadline=until, largest=largest)
    while True:
        foreseen, following = _token(page), None
        if foreseen not in ("", asked):  # the server works on the next page while this one is decoded
            following = client.ahead(path, query | {"continue": foreseen}, deadline=until, largest=largest)
        token = collector.add_page(page)
        after_page(collector)
        if not token:
            return
        if token == asked:
            raise Rejected(f"GET {path} gives the same page again and again: does a proxy leave the query out?")
        ready = _ready(following) if following and token == foreseen else None
        asked, query = token, query | {"continue": token}
        page = ready or client.get(path, query, deadline=until, largest=largest)


def _ready(following: "Future[HttpAnswer]") -> bytes | None:
    """Return the page that was fetched ahead; None if it has to be fetched again."""
    try:
        answer = following.result()
        return None if answer.status == HTTPStatus.UNAUTHORIZED else answer.demanded()
    except Transient:
        return None


#: What stands before the items of a page: API servers write the metadata first.
_HEAD = re.compile(rb'\{[^][{}]*"metadata":\s*(\{[^][{}]*\})[^][{}]*"items":\s*\[')


def _token(page: bytes) -> str:
    """Return the continue token of a page that is not decoded yet; empty if it does not stand before the items."""
    found = _HEAD.match(page)
    try:
        return (msgspec.json.decode(found[1], type=PageMetadata).continue_ or "") if found else ""
    except msgspec.MsgspecError:
        return ""
