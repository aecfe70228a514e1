"""An HTTP proxy on the loopback that opens tunnels (CONNECT), to whoever says the right user and password.

with FakeProxy(password="me:secret") as proxy:
    proxy.url                # http://127.0.0.1:41234
    proxy.heads              # what it was asked, one text for each connection
"""

import base64
import socket
import threading

from tests.fake_http import HttpServer, Reply, Request, _Handler

#: How long an end of a tunnel may be silent; only a broken program comes near it.
_TIMEOUT_SECONDS = 120.0


class FakeProxy(HttpServer):
    """Without a password everybody is let through."""

    def __init__(self, password: str = "") -> None:
        self.heads: list[str] = []
        right = base64.b64encode(password.encode()).decode()
        self.wanted = f"Proxy-Authorization: Basic {right}\n" if password else ""
        super().__init__(self._asks_for_password)
        self.RequestHandlerClass = _Tunnel

    def _asks_for_password(self, request: Request) -> Reply:
        self.heads.append(f"{request.method} {request.path}\n{request.headers}")
        return Reply(407, "", {"Proxy-Authenticate": "Basic realm=x", "Connection": "close"})


class _Tunnel(_Handler):
    server: FakeProxy
    timeout = _TIMEOUT_SECONDS

    def do_CONNECT(self) -> None:  # noqa: N802  as its base calls it
        self.close_connection = True
        if self.server.wanted not in str(self.headers):
            self._answer()
            return
        self.server.heads.append(f"{self.requestline}\n{self.headers}")
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port)), _TIMEOUT_SECONDS) as server:
            self.send_response_only(200, "Connection established")
            self.end_headers()
            self.wfile.flush()
            back = threading.Thread(target=_pass_on, args=(server, self.connection), daemon=True)
            back.start()
            _pass_on(self.connection, server)
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
