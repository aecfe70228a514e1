"""The HTTP server, in a thread of its own."""

import asyncio
import logging
import socket
import threading
from collections.abc import Mapping
from typing import Any, Self

from tornado.http1connection import HTTP1ServerConnection
from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream
from tornado.web import Application, RequestHandler

from rebalancer.errors import UsageError
from rebalancer.telemetry.checks import PageOf, ServedPage
from rebalancer.telemetry.tls import Identity

#: Seconds for a client's handshake and headers, and for its silence between two requests.
CLIENT_SECONDS = 10.0
#: Bytes of a request's headers; longer ones are an error.
HEADER_BYTES = 16 * 1024
#: Connections at a time; a further one closes the oldest, so that clients cannot use up all file descriptors.
MOST_CONNECTIONS = 200
#: Seconds that the start may take, and the end.
_TIMEOUT = 10.0
#: Seconds between two checks of the certificate's files.
_REFRESH_SECONDS = 10.0


class Server:
    """Serves pages by their path until it is closed.

    Args:
        address: to listen on; empty for all.
        port: to listen on; 0 for any that is free.
        pages: by path.
        identity: for TLS; None serves plain HTTP.

    Attributes:
        port: the port that it listens on.

    Raises:
        UsageError: it cannot listen on this port.
    """

    def __init__(self, address: str, port: int, pages: Mapping[str, PageOf], identity: Identity | None) -> None:
        # Errors of clients are not logged: whoever can reach the port could fill the log.
        logging.getLogger("tornado").setLevel(logging.ERROR)
        self._listener = _listen(address, port)
        self.port = int(self._listener.getsockname()[1])
        self._pages = dict(pages)
        self._identity = identity
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="serving", daemon=True)
        self._thread.start()
        self._ready.wait(_TIMEOUT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening, and close all connections."""
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(_TIMEOUT)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        server = _BoundedServer(
            Application([(".*", _Handler, {"pages": self._pages})], log_function=_say_nothing),
            ssl_options=self._identity.context if self._identity else None,
            idle_connection_timeout=CLIENT_SECONDS,
            body_timeout=CLIENT_SECONDS,
            max_header_size=HEADER_BYTES,
            max_body_size=0,
            max_buffer_size=4 * HEADER_BYTES,
        )
        server.add_sockets([self._listener])
        self._ready.set()
        while not self._over.is_set():
            await self._pause()
        server.stop()
        await asyncio.wait_for(server.close_all_connections(), _TIMEOUT)

    async def _pause(self) -> None:
        try:
            await asyncio.wait_for(self._over.wait(), _REFRESH_SECONDS)
        except TimeoutError:
            if self._identity:
                self._identity.refresh()


class _BoundedServer(HTTPServer):
    """Makes room for a new client by closing the connection that has been open for longest.

    Probes and scrapes are done within milliseconds, so an old connection is slow or idle.
    """

    def initialize(self, *args: Any, **kwargs: Any) -> None:
        self._open: dict[IOStream, None] = {}
        super().initialize(*args, **kwargs)

    def handle_stream(self, stream: IOStream, address: tuple[str, int]) -> None:
        if len(self._open) >= MOST_CONNECTIONS:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.close()
        self._open[stream] = None
        super().handle_stream(stream, address)

    def on_close(self, server_conn: object) -> None:
        assert isinstance(server_conn, HTTP1ServerConnection)
        self._open.pop(server_conn.stream, None)
        super().on_close(server_conn)


class _Handler(RequestHandler):
    """Answers GET and HEAD; every other method is not allowed (the descheduler's `DELETE /metrics` resets counters)."""

    def initialize(self, pages: Mapping[str, PageOf]) -> None:
        self._pages = pages

    def set_default_headers(self) -> None:
        self.clear_header("Server")

    def get(self) -> None:
        make = self._pages.get(self.request.path)
        verbose = "verbose" in self.request.query.split("&") or bool(self.get_query_arguments("verbose"))
        page = make(verbose) if make else ServedPage(404, b"404 page not found\n")
        is_html = bool(page.html) and "text/html" in self.request.headers.get("Accept", "")
        self.set_status(page.status)
        self.set_header("Content-Type", "text/html; charset=utf-8" if is_html else page.content_type)
        scripts = "; script-src 'unsafe-inline'" if page.scripted else ""
        self.set_header("Content-Security-Policy", f"default-src 'none'; style-src 'unsafe-inline'{scripts}")
        if page.refresh and is_html:
            self.set_header("Refresh", str(page.refresh))
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Cache-Control", "no-store")
        self.set_header("Vary", "Accept")
        self.finish(page.html if is_html else page.body)

    def head(self) -> None:
        self.get()

    def write_error(self, status_code: int, **_: object) -> None:
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{status_code} {self._reason}\n")


def _listen(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    both = address == "::" and socket.has_dualstack_ipv6()
    try:
        listener = socket.create_server((address, port), family=family, backlog=MOST_CONNECTIONS, dualstack_ipv6=both)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {address or '*'}:{port} (--bind-address, --secure-port): {error.strerror}; "
            "--secure-port 0 serves nothing"
        ) from None
    listener.setblocking(False)
    return listener


def _say_nothing(_handler: RequestHandler) -> None:
    """Keep probes out of the log: one comes every few seconds, for months."""
