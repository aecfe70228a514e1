"""Sends requests to the API server, turns failures into errors, and repeats reads that may succeed later."""

import math
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, ProxyError, SSLError

from rebalancer.errors import ClusterError, NoCredentials, Unreachable
from rebalancer.kube.answers import HttpAnswer, Rejected, Transient, cut
from rebalancer.kube.config import UNAUTHORISED, Connection, named
from rebalancer.kube.tries import Deadline, Ending, RetryPolicy
from rebalancer.untrusted.documents import LARGEST_PAGE, Unreadable, check_size
from rebalancer.untrusted.exchange import GivenUp, begin, within, words_of

if TYPE_CHECKING:
    from rebalancer.kube.credentials import Access  # importing it costs half a second


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, and whether it has left this process."""

    method: str
    target: str
    until: Deadline  # when it is given up, headers and body together
    body: bytes | None = None
    gate: Callable[[], None] = lambda: None  # called before a body is sent; raises to stop it
    largest: int = LARGEST_PAGE  # bytes of the largest answer that is accepted
    sent: threading.Event = field(default_factory=threading.Event)

    @property
    def path(self) -> str:
        """What is asked for, without the query."""
        return self.target.partition("?")[0]

    def guarded(self, body: bytes) -> Iterator[bytes]:
        """Yield the body once the connection is established: the last moment at which the gate can stop the request."""
        self.gate()
        if not self.until.left():
            raise Transient("the time was up before the request was sent", connected=False)
        self.sent.set()
        yield body


def no_answer(error: HTTPError, server: str, proxy: str, *, sent: bool = False) -> ClusterError:
    """Return our error for an error of urllib3, which names the part that is missing: the server, or the proxy if any.

    A connection through a proxy that breaks after the body was sent is the same `ProxyError` as one that it refuses.
    """
    cause = error.args[0] if error.args else None
    if isinstance(error, SSLError) and isinstance(cause, ssl.SSLCertVerificationError):
        return Unreachable(
            f"the certificate of {server} is not trusted: {cut(cause.verify_message)}. "
            "Check certificate-authority in the kubeconfig, or tls-server-name."
        )
    words, connected = cut(words_of(error)), _is_connected(error)
    if proxy and "Tunnel connection failed: 407" in words:  # in the words of `http.client`
        return Unreachable(f"{named(proxy)} {UNAUTHORISED}")
    if proxy and isinstance(error, ProxyError):
        words = f"{words}, through {named(proxy)}"
    return Transient(f"no answer from {server}: {words}", connected=sent or connected, maybe_done=sent)


def _is_connected(error: HTTPError) -> bool:
    if isinstance(error, ProxyError):
        return isinstance(error.original_error, ConnectionError)  # one that could not be made is an error of urllib3
    if isinstance(error, SSLError):
        # When a server dies, TLS ends without a closing message; any other TLS error comes from wrong settings.
        return bool(error.args) and isinstance(error.args[0], ssl.SSLEOFError)
    return not isinstance(error, NewConnectionError | ConnectTimeoutError)


#: The longest that one GET may take from its first byte to its last, when the caller sets no deadline.
LONGEST_READ_SECONDS = 300.0
#: Bytes of the largest answer to a request about one object: etcd holds no object of more than 1.5 MiB.
LARGEST_OBJECT = 8 << 20
NO_ANSWER = 0  # the status code that observers get for a request without an answer
#: Called with a request: its method, its path without the query, and the status code of the answer.
Observe = Callable[[str, str, int], None]
_CHUNK = 1 << 18


@dataclass(frozen=True, slots=True)
class Client:
    """Speaks to one API server; safe to share between threads."""

    connection: Connection
    _: KW_ONLY
    request_timeout: float = 30.0  # seconds without any data from the server after which a request is given up
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    observe: Observe = lambda _method, _path, _status: None
    is_patient: bool = False  # loading credentials may take longer than the request: short ones end a slow plugin
    ending: Ending = field(default_factory=Ending)

    def get(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        deadline: Deadline | None = None,
        largest: int = LARGEST_PAGE,
    ) -> bytes:
        """Read `path`, trying 429, 5xx, lost connections and time-outs again, as retry policy and deadline allow."""
        until = deadline or Deadline.after(LONGEST_READ_SECONDS, self.retry_policy.clock)
        request = Request("GET", f"{path}?{urlencode(query)}" if query else path, until, largest=largest)
        return self.retry_policy.call(until, lambda: self._send(request).demanded())

    def ahead(
        self, path: str, query: Mapping[str, str], *, deadline: Deadline, largest: int
    ) -> "Future[HttpAnswer] | None":
        """Read `path` once while something else is done; None if the credentials have expired.

        Another thread sends the request.  It never retries and never loads credentials: a plugin that it starts could
        outlive the program.
        """
        access = self.connection.present
        request = Request("GET", f"{path}?{urlencode(query)}", deadline, largest=largest)
        return None if access.has_expired() else begin(partial(self._send_as, access, request))

    def look(self, path: str, *, deadline: Deadline | None = None) -> HttpAnswer:
        """Read `path` once, and return the answer whatever its status is; only a 401 is an error, or no answer."""
        until = Deadline.after(self.request_timeout, self.retry_policy.clock).or_sooner(deadline)
        return self._send(Request("GET", path, until, largest=LARGEST_OBJECT))

    def write(
        self,
        method: str,
        path: str,
        body: bytes,
        *,
        deadline: Deadline | None = None,
        gate: Callable[[], None] = lambda: None,
    ) -> HttpAnswer:
        """Send a body once, and return the answer whatever its status is; only a 401 is an error.

        The body of a PATCH is a JSON patch (RFC 6902).  The request is given up at the deadline, or after the request
        time-out if that ends sooner.  The gate is called before the body is sent, and again before it is sent with
        fresh credentials; an error that it raises stops the request.  Without an answer it is Transient.
        """
        until = Deadline.after(self.request_timeout, self.retry_policy.clock).or_sooner(deadline)
        return self._send(Request(method, path, until, body, gate, LARGEST_OBJECT))

    def _send(self, request: Request) -> HttpAnswer:
        access = self.connection.access(self._loading_seconds(request))
        answer = self._send_as(access, request)
        if answer.status != HTTPStatus.UNAUTHORIZED:
            return answer
        fresh = self.connection.reload(access, self._loading_seconds(request))
        answer = self._send_as(fresh, replace(request, sent=threading.Event()))
        if answer.status == HTTPStatus.UNAUTHORIZED:
            raise NoCredentials(
                f"{self._server()} does not accept the credentials, also after loading them again: "
                f"{answer.text()}. Log in again, or choose another context with --context."
            )
        return answer

    def _loading_seconds(self, request: Request) -> float:
        return min(math.inf if self.is_patient else request.until.left(), self.ending.left())

    def _send_as(self, access: "Access", request: Request) -> HttpAnswer:
        headers = access.headers()
        if request.body is not None:
            form = "json-patch+json" if request.method == "PATCH" else "json"
            headers |= {"Content-Type": f"application/{form}", "Content-Length": str(len(request.body))}
        left = min(request.until.left(), self.ending.left())
        if not self.ending.left():
            raise Unreachable(f"no time left to ask {self._server()}: the program was told to end")
        if left <= 0:
            raise Transient(f"no time left to ask {self._server()}", connected=False)
        request.gate()
        status = NO_ANSWER
        try:
            answer = within(left, partial(self._exchange, access, request, headers), self.ending.is_set)
            status = answer.status
        except GivenUp:
            raise Transient(f"no answer from {self._server()}: timed out", maybe_done=True) from None
        except HTTPError as error:
            raise no_answer(error, self._server(), access.proxy, sent=request.sent.is_set()) from error
        except Unreadable as error:
            unread = f"the answer of {self._server()} to {request.method} {request.target} is not read: {error}"
            # At this point it is unknown whether a change was made.
            raise (Rejected(unread) if request.body is None else Transient(unread, maybe_done=True)) from error
        finally:
            self.observe(request.method, request.path, status)
        if answer.status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED and access.proxy:
            raise Unreachable(f"{named(access.proxy)} {UNAUTHORISED}")
        return answer

    def _exchange(self, access: "Access", request: Request, headers: Mapping[str, str]) -> HttpAnswer:
        wait = min(self.request_timeout, request.until.left()) or 0.001  # urllib3 does not accept zero
        response = access.pool.urlopen(
            request.method,
            self.connection.server + request.target,
            body=None if request.body is None else request.guarded(request.body),
            headers=headers,
            # A connection is given up before the request is: then it is certain that the request was not sent.
            timeout=urllib3.Timeout(connect=wait * 0.9, read=wait),
            preload_content=False,
            retries=False,  # only `RetryPolicy` decides about another try
            redirect=False,
        )
        if response.status < HTTPStatus.OK:
            response.close()  # what follows such an answer would pass for the answer to the next request
        chunks, size = [], 0
        with closing(response):  # a connection read to its end goes back to the pool, any other is closed
            while chunk := response.read1(_CHUNK, decode_content=True):
                chunks.append(chunk)
                size += len(chunk)
                check_size(size, request.largest)
                if not request.until.left():  # it may come slowly, but not for ever
                    raise Transient(f"{self._server()} did not finish its answer in time", maybe_done=True)
        return HttpAnswer(request.method, request.path, response.status, response.headers, b"".join(chunks))

    def _server(self) -> str:
        context = f" (context {self.connection.context})" if self.connection.context else ""
        return f"the API server {self.connection.server}{context}"


def path_of(*segments: str) -> str:
    """Return a path with each segment percent-encoded: names come from the cluster."""
    return "".join(f"/{quote(segment, safe='')}" for segment in segments)
