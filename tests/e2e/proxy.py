"""An HTTPS proxy before the API server that holds a chosen request until the test lets it go on.

It gives a test the moment between what the program has read and what it then asks for.
"""

import http.client
import ssl
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import yaml

from tests.e2e.harness import ControlPlane

TIMEOUT = 300
# Between one hop and the next; all other headers go through.
HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "host"})


@dataclass
class Hold:
    """One request to hold: the first of a method whose path ends so, or one after that.

    Attributes:
        before: How many such requests go through before it.
        path: The path of the request held.
    """

    method: str
    path_end: str
    before: int = 0
    path: str = ""
    _arrived: threading.Event = field(default_factory=threading.Event)
    _released: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> str:
        """Wait until such a request is held, and return its path."""
        if not self._arrived.wait(TIMEOUT):
            raise AssertionError(f"no {self.method} ...{self.path_end} within {TIMEOUT} s")
        return self.path

    def release(self) -> None:
        self._released.set()

    def pass_through(self, method: str, path: str) -> None:
        if method != self.method or not path.endswith(self.path_end) or self._arrived.is_set():
            return
        self.before -= 1
        if self.before < 0:
            self.path = path
            self._arrived.set()
            self._released.wait(TIMEOUT)

    def loses(self, method: str, path: str) -> bool:
        """Whether the answer does not come back."""
        return False


@dataclass
class Lose(Hold):
    """Requests whose answers are lost: the first such one and what is asked of the same path again.

    The API server does what was asked for, and the program never hears of it.
    """

    def pass_through(self, method: str, path: str) -> None:
        """Let everything through."""

    def loses(self, method: str, path: str) -> bool:
        if method == self.method and path.endswith(self.path_end):
            self.path = self.path or path
        return method == self.method and path == self.path


class Proxy:
    """Forwards every request as it is, on a port of its own, with the API server's certificate."""

    def __init__(self, controlplane: ControlPlane, hold: Hold) -> None:
        self._directory = controlplane.directory
        self._hold = hold
        self._upstream = urlsplit(controlplane.server)
        self._trust = ssl.create_default_context(cafile=self._directory / "ca.crt")
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        identity = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        identity.load_cert_chain(self._directory / "server.crt", self._directory / "server.key")
        self._server.socket = identity.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, name="proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of what is held, and stop."""
        self._hold.release()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._server.server_address[1]}"

    def kubeconfig(self, direct: Path) -> Path:
        """Write a kubeconfig like another one, but by way of this proxy."""
        document = yaml.safe_load(direct.read_text())
        document["clusters"][0]["cluster"]["server"] = self.url
        path = self._directory / f"proxy-{urlsplit(self.url).port}-{direct.name}"
        path.write_text(yaml.safe_dump(document))
        return path

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = TIMEOUT

            def do_GET(self) -> None:
                proxy.forward(self)

            def do_POST(self) -> None:
                proxy.forward(self)

            def do_PUT(self) -> None:
                proxy.forward(self)

            def log_message(self, *_: object) -> None:
                """Stay silent."""

        return Handler

    def forward(self, request: BaseHTTPRequestHandler) -> None:
        """Ask the API server and pass its answer on; without one, hang up."""
        body = request.rfile.read(int(request.headers.get("content-length", 0)))
        self._hold.pass_through(request.command, request.path)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP}
        upstream = http.client.HTTPSConnection(
            str(self._upstream.hostname), self._upstream.port, timeout=TIMEOUT, context=self._trust
        )
        try:
            upstream.request(request.command, request.path, body or None, headers)
            answer = upstream.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            request.close_connection = True
            return
        finally:
            upstream.close()
        if self._hold.loses(request.command, request.path):
            request.close_connection = True
            return
        request.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOP_BY_HOP:
                request.send_header(name, value)
        request.send_header("content-length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)
