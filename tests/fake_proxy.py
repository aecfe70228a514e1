"""An HTTP proxy on the loopback that opens tunnels (CONNECT), to whoever says the right user and password.

with FakeProxy(password="me:secret") as proxy:
    proxy.url                # http://127.0.0.1:41234
    proxy.heads              # what it was asked, one text for each connection
"""

import base64
import socket
import socketserver
import threading
from typing import Self

#: How long an end of a tunnel may be silent; only a broken program comes near it.
_TIMEOUT_SECONDS = 120.0
_END = b"\r\n\r\n"
_ASKS = (
    b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n"
    b"Connection: close\r\n\r\n"
)


class FakeProxy(socketserver.ThreadingTCPServer):
    """See the module; without a password everybody is let through."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, password: str = "") -> None:
        self.heads: list[str] = []
        self._password = password
        super().__init__(("127.0.0.1", 0), _Tunnel)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def lets_in(self, head: str) -> bool:
        right = base64.b64encode(self._password.encode()).decode()
        return not self._password or f"Proxy-Authorization: Basic {right}\r\n" in head


class _Tunnel(socketserver.BaseRequestHandler):
    server: FakeProxy
    request: socket.socket

    def handle(self) -> None:
        self.request.settimeout(_TIMEOUT_SECONDS)
        head = b""
        while _END not in head:
            if not (more := self.request.recv(4096)):
                return
            head += more
        self.server.heads.append(head.decode())
        method, target, _ = head.decode().split(" ", 2)
        if method != "CONNECT" or not self.server.lets_in(head.decode()):
            self.request.sendall(_ASKS)
            return
        host, _, port = target.rpartition(":")
        with socket.create_connection((host, int(port)), _TIMEOUT_SECONDS) as server:
            self.request.sendall(b"HTTP/1.1 200 Connection established" + _END)
            back = threading.Thread(target=_pass_on, args=(server, self.request), daemon=True)
            back.start()
            _pass_on(self.request, server)
            back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    """Pass on what comes until either end has closed; then close both."""
    try:
        while some := source.recv(65536):
            target.sendall(some)
    except OSError:
        pass  # the other direction has closed it
    for each in (source, target):
        try:
            each.shutdown(socket.SHUT_RDWR)
        except OSError:
            continue  # closed already
