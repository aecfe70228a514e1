"""HTTP for `FakeApiServer`: requests in, replies out, and connections that break on purpose."""

import gzip
import json
import socket
import ssl
import struct
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

#: Longer bodies are compressed if the client can take it; the real server begins at 128 KiB.
SHORT = 1024

#: Between two bytes of an answer that drips.
DRIP_SECONDS = 0.02


@dataclass(frozen=True)
class Request:
    """A request as it came; `port` is the client's end of the connection.

    A header that came more than once has a line for each.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    port: int


@dataclass(frozen=True)
class Reply:
    """An answer.

    Attributes:
        lost: breaks the connection instead of sending it.
        dripping: `headers` or `body` comes without an end, byte by byte, until `over` is set.
    """

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    lost: bool = False
    dripping: str = ""
    over: threading.Event = field(default_factory=threading.Event)


class HttpServer(ThreadingHTTPServer):
    """Listens on a free port of the loopback, and serves while it is entered.

    `broken` holds what an answering function raised; leaving raises the first of it.
    """

    daemon_threads = False

    def __init__(
        self, answer: Callable[[Request], Reply], certificate: Path | None = None, *, asks: bool = False
    ) -> None:
        self.answer = answer
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if certificate else None
        if self._tls and certificate:
            self._tls.load_cert_chain(certificate)
        if self._tls and asks:
            self._tls.verify_mode = ssl.CERT_REQUIRED
            self._tls.load_verify_locations(certificate)
        self.broken: list[BaseException] = []
        self.connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), _Handler)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self.broken:
            raise self.broken[0]

    def stop(self) -> None:
        """End whatever is under way, and listen no more; a second time does nothing."""
        if self._thread.is_alive():
            self.shutdown()
            self.close_connections()
            self.server_close()
            self._thread.join()

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.server_address[1]}"

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        if self._tls is None:
            return connection, address
        # Shaking hands here would keep all other clients waiting: it happens with the first byte.
        return self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, request: object, client_address: object) -> None:
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, OSError):  # a lost client is not an error
            self.broken.append(error)

    def close_connections(self) -> None:
        for each in list(self.connections):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # closed already


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body in one packet: two would wait for a delayed acknowledgement
    disable_nagle_algorithm = True
    server: HttpServer

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self) -> None:
        self.server.connections.discard(self.connection)
        super().finish()

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def do_PATCH(self) -> None:
        self._answer()

    def _answer(self) -> None:
        split = urlsplit(self.path)
        length = int(self.headers.get("Content-Length", "0"))
        sent = self.rfile.read(length)
        if len(sent) < length:  # the client has changed its mind: nothing is done
            self.close_connection = True
            return
        headers = {name.lower(): "\n".join(self.headers.get_all(name, [])) for name in self.headers}
        body = json.loads(sent) if "json" in self.headers.get("Content-Type", "") else sent or None
        request = Request(self.command, split.path, dict(parse_qsl(split.query)), headers, body, self.client_address[1])
        reply = self.server.answer(request)
        if reply.lost:
            self._break()
        elif reply.dripping:
            self._drip(reply)
        else:
            self._send(reply)

    def _send(self, reply: Reply) -> None:
        is_text = isinstance(reply.body, str | bytes)
        text = reply.body if is_text else json.dumps(reply.body)
        body = text.encode() if isinstance(text, str) else text
        zipped = len(body) > SHORT and "gzip" in self.headers.get("Accept-Encoding", "")
        body = gzip.compress(body, compresslevel=1) if zipped else body
        self.send_response_only(reply.status)
        self.send_header("Content-Type", "text/plain" if is_text else "application/json")
        if zipped:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _drip(self, reply: Reply) -> None:
        """Send bytes that belong to a header, or to a body, as long as somebody takes them."""
        self.close_connection = True
        self.send_response_only(reply.status)
        if reply.dripping == "body":
            self.send_header("Content-Length", "1000000")
            self.end_headers()
        self.flush_headers()
        self.wfile.flush()
        while not reply.over.wait(DRIP_SECONDS):
            self.wfile.write(b"x")
            self.wfile.flush()

    def _break(self) -> None:
        self.close_connection = True
        if not isinstance(self.connection, ssl.SSLSocket):  # TLS notices an end that was not announced by itself
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.server.connections.discard(self.connection)
        socket.close(self.connection.detach())  # with a lingering of zero: a reset, no orderly end


def failure(code: int, message: str, *, reason: str = "", kind: str = "") -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": {"kind": kind} if kind else {},
        "code": code,
    }
