"""One HTTP request as it is handed to urllib3, and whether it has left this process."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rebalancer.kube.answers import Transient
from rebalancer.kube.deadline import Deadline
from rebalancer.untrusted.documents import LARGEST_PAGE


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        until: when it is given up, headers and body together.
        gate: called before a body is sent; raises to stop it.
        largest: bytes of the largest answer that is accepted.
        content_type: of the body.
        sent: set once the body is handed over to a connection: from then on the server may act on it.
    """

    method: str
    target: str
    until: Deadline
    body: bytes | None = None
    gate: Callable[[], None] = lambda: None
    largest: int = LARGEST_PAGE
    content_type: str = "application/json"
    sent: threading.Event = field(default_factory=threading.Event)

    def headers(self) -> dict[str, str]:
        """Return what describes the body."""
        if self.body is None:
            return {}
        return {"Content-Type": self.content_type, "Content-Length": str(len(self.body))}

    def guarded(self) -> Iterator[bytes] | None:
        """Return the body as an iterator, which urllib3 reads once the connection is established.

        Without its body a request does nothing, so this is the last moment at which the gate can stop it.
        """
        return None if self.body is None else self._pieces(self.body)

    def _pieces(self, body: bytes) -> Iterator[bytes]:
        self.gate()
        if not self.until.left():
            raise Transient("the time was up before the request was sent", connected=False)
        self.sent.set()
        yield body
