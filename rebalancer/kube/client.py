"""Requests to the API server: sent with its credentials, answered or explained, retried by meaning."""

import ssl
from collections.abc import Callable, Mapping
from contextlib import closing
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, ProxyError, SSLError

from rebalancer.errors import ClusterError, NoCredentials, Unreachable
from rebalancer.kube.answers import Answer, Transient, cut, error_of
from rebalancer.kube.config import Connection
from rebalancer.kube.patience import Deadline, Patience

if TYPE_CHECKING:
    from rebalancer.kube.credentials import Access  # importing it costs half a second

#: The longest that one GET may take from its first byte to its last, when the caller sets no deadline.
LONGEST_READ_SECONDS = 300.0

#: The status code of a request that got no answer, as observers are told it.
NO_ANSWER = 0

#: Told of a request: its method, its path without the query, and the status code of the answer.
Observe = Callable[[str, str, int], None]

_CHUNK = 1 << 18


class Client:
    """Speaks to one API server.

    Safe to share between threads.

    Args:
        connection: where the server is, and the credentials.
        request_timeout: seconds without a sign of the server after which a request is given up.
        patience: how reads are tried again.
        observe: told of every request; the status code is `NO_ANSWER` where none came.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        request_timeout: float = 30.0,
        patience: Patience | None = None,
        observe: Observe = lambda _method, _path, _status: None,
    ) -> None:
        self._observe = observe
        self._connection = connection
        self._request_timeout = request_timeout
        self._patience = patience or Patience()

    def get(self, path: str, query: Mapping[str, str] | None = None, *, deadline: Deadline | None = None) -> bytes:
        """Read `path`, as often as it takes within patience and deadline.

        429, 5xx, lost connections and time-outs are tried again, 403 and 404 never.

        Raises:
            Unreachable: no usable answer in time.
            NoCredentials: the server does not know us, also not with fresh credentials.
            Forbidden: the message names verb and resource.
            NotFound: there is no such thing.
            Expired: the continue token in the query is too old.
            Rejected: anything else that is no success.
        """
        until = deadline or Deadline.after(LONGEST_READ_SECONDS, self._patience.clock)
        return self._patience.tries(until)(self._get_once, path, query or {}, until)

    def _get_once(self, path: str, query: Mapping[str, str], until: Deadline) -> bytes:
        target = f"{path}?{urlencode(query)}" if query else path
        answer = self._send("GET", target, None, until)
        if answer.is_success:
            return answer.body
        raise error_of(answer, "GET", path)

    def post(self, path: str, body: bytes, *, deadline: Deadline | None = None) -> Answer:
        """Send a JSON body once, and return the answer whatever it is, but for a 401.

        Raises:
            Transient: there is no answer; its `maybe_done` says whether the server may have acted.
            Unreachable: there cannot be one (the server's certificate is not trusted).
            NoCredentials: as for `get`.
        """
        return self._send_once("POST", path, body, deadline)

    def put(self, path: str, body: bytes, *, deadline: Deadline | None = None) -> Answer:
        """Replace an object, once; the answer and the errors are those of `post`."""
        return self._send_once("PUT", path, body, deadline)

    def _send_once(self, method: str, path: str, body: bytes, deadline: Deadline | None) -> Answer:
        until = Deadline.after(self._request_timeout, self._patience.clock).or_sooner(deadline)
        return self._send(method, path, body, until)

    def _send(self, method: str, target: str, body: bytes | None, until: Deadline) -> Answer:
        access = self._connection.access()
        answer = self._send_as(access, method, target, body, until)
        if answer.status != HTTPStatus.UNAUTHORIZED:
            return answer
        fresh = self._connection.reload(access)
        answer = self._send_as(fresh, method, target, body, until)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            raise NoCredentials(
                f"{self._server()} does not accept the credentials, also after loading them again: "
                f"{answer.text()}. Log in again, or choose another context with --context."
            )
        return answer

    def _send_as(self, access: "Access", method: str, target: str, body: bytes | None, until: Deadline) -> Answer:
        headers = access.headers() | ({"Content-Type": "application/json"} if body is not None else {})
        wait = min(self._request_timeout, until.left())
        if wait <= 0:
            raise Transient(f"no time left to ask {self._server()}", connected=False)
        try:
            response = access.pool.request(
                method,
                self._connection.server + target,
                body=body,
                headers=headers,
                timeout=urllib3.Timeout(connect=wait, read=wait),
                preload_content=False,
                retries=False,  # retried by meaning, and by one rule: see `Patience`
                redirect=False,
            )
            answer = Answer(response.status, response.headers, self._read(response, until))
        except HTTPError as error:
            self._observe(method, target.partition("?")[0], NO_ANSWER)
            raise self._no_answer(error) from error
        self._observe(method, target.partition("?")[0], answer.status)
        return answer

    def _read(self, response: urllib3.BaseHTTPResponse, until: Deadline) -> bytes:
        """Read to the end, however slowly it drips, but not past the deadline."""
        chunks = []
        with closing(response):  # at its end the connection is in the pool again, before that it is closed
            while chunk := response.read1(_CHUNK, decode_content=True):
                chunks.append(chunk)
                if not until.left():
                    raise Transient(f"{self._server()} did not finish its answer in time", maybe_done=True)
        return b"".join(chunks)

    def _no_answer(self, error: HTTPError) -> ClusterError:
        cause = error.args[0] if error.args else None
        if isinstance(error, SSLError) and isinstance(cause, ssl.SSLCertVerificationError):
            return Unreachable(
                f"the certificate of {self._server()} is not trusted: {cut(cause.verify_message)}. "
                "Check certificate-authority in the kubeconfig, or tls-server-name."
            )
        sent = not isinstance(error, NewConnectionError | ConnectTimeoutError | ProxyError)
        # TLS breaks off without a farewell when a server dies; any other error of TLS is one of settings.
        connected = sent and not (isinstance(error, SSLError) and not isinstance(cause, ssl.SSLEOFError))
        return Transient(f"no answer from {self._server()}: {_in_words(error)}", connected=connected, maybe_done=sent)

    def _server(self) -> str:
        context = f" (context {self._connection.context})" if self._connection.context else ""
        return f"the API server {self._connection.server}{context}"


def _in_words(error: HTTPError) -> str:
    """Return what went wrong without urllib3's object names."""
    chain = (*error.args, error.__cause__, error.__context__)
    cause = next((each for each in chain if isinstance(each, OSError)), None)
    return cut((cause.strerror if cause else None) or str(cause or error))


def path_of(*segments: str) -> str:
    """Return a path with each segment percent-encoded: names come from the cluster."""
    return "".join(f"/{quote(segment, safe='')}" for segment in segments)
