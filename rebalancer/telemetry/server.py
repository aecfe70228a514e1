"""The HTTP server, in a thread of its own, and its TLS: with the given certificate, or a self-signed one."""

import asyncio
import logging
import os
import socket
import ssl
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from tornado.http1connection import HTTP1ServerConnection
from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream
from tornado.web import Application, RequestHandler

from rebalancer.errors import UsageError
from rebalancer.telemetry.checks import PageOf, ServedPage

_LOG = logging.getLogger(__name__)

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
_VALID_FOR = timedelta(days=3 * 365)
_VERSIONS = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}


class Identity:
    """The server's TLS context, with its certificate, which is read again when it changes.

    Without files, which are PEM, it makes a self-signed one.  The version is TLS 1.2 unless given; suites are those of
    TLS 1.2, by their OpenSSL or IANA names.  Raises UsageError if they cannot be used.
    """

    def __init__(
        self, cert_file: str = "", key_file: str = "", min_version: str = "", cipher_suites: Sequence[str] = ()
    ) -> None:
        if bool(cert_file) != bool(key_file):
            raise UsageError("--tls-cert-file and --tls-private-key-file go together")
        self._files = (cert_file, key_file) if cert_file else ()
        self._new_context = partial(_context, min_version, cipher_suites)
        self.context = self._new_context()
        self._content: tuple[bytes, ...] = ()
        if self._files:
            self._load()
        else:
            with _as_file(self_signed(datetime.now(UTC))) as path:
                self.context.load_cert_chain(path)

    def refresh(self) -> None:
        """Load the files again if they have changed; if they cannot be used, log a warning and keep the old ones."""
        try:
            self._load()
        except UsageError as error:
            _LOG.warning("%s; the certificate of before is still served", error)

    def _load(self) -> None:
        try:
            content = tuple(Path(file).read_bytes() for file in self._files)
            if content != self._content:
                self._new_context().load_cert_chain(*self._files)  # a bad pair must not touch the context in use
                self.context.load_cert_chain(*self._files)
        except OSError as error:  # ssl.SSLError is one
            raise UsageError(f"the certificate in {' and '.join(self._files)} cannot be used: {error}") from error
        self._content = content


def self_signed(now: datetime) -> bytes:
    """Return a new key and a certificate for it as PEM, named as the descheduler names its own."""
    key = ec.generate_private_key(ec.SECP256R1())
    host = f"apiserver-loopback-client@{int(now.timestamp())}"
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + _VALID_FOR)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, form, serialization.NoEncryption()) + certificate.public_bytes(encoding)


def _context(min_version: str, suites: Sequence[str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if min_version and min_version not in _VERSIONS:
        raise UsageError(f"--tls-min-version {min_version!r}: there are {', '.join(_VERSIONS)}")
    context.minimum_version = _VERSIONS[min_version or "VersionTLS12"]
    if suites:
        _choose(context, {suite: _openssl_name(suite) for suite in suites})
    return context


def _choose(context: ssl.SSLContext, suites: Mapping[str, str]) -> None:
    """Serve these suites of TLS 1.2, by OpenSSL's names, and warn of others; those of TLS 1.3 are served anyway."""
    try:
        context.set_ciphers(":".join(suites.values()))
    except ssl.SSLError:
        raise UsageError(
            f"--tls-cipher-suites {','.join(suites)}: OpenSSL offers none of them for TLS 1.2; "
            "for TLS 1.3 alone give --tls-min-version VersionTLS13 instead"
        ) from None
    served = {each["name"] for each in context.get_ciphers()}
    if unknown := [suite for suite, name in suites.items() if name not in served]:
        _LOG.warning("--tls-cipher-suites: OpenSSL does not offer %s here; the others are served", ", ".join(unknown))


def _openssl_name(suite: str) -> str:
    """Return OpenSSL's name for IANA's; an OpenSSL name is returned as it is.

    TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is ECDHE-RSA-AES128-GCM-SHA256; TLS_RSA_WITH_AES_128_CBC_SHA is AES128-SHA.
    """
    exchange, divided, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    if not divided:
        return suite
    if "CHACHA20" in cipher:
        cipher = cipher.removesuffix("_SHA256")
    name = cipher if exchange == "RSA" else f"{exchange}_{cipher}"
    return name.replace("AES_", "AES").replace("_CBC_", "_").replace("_", "-")


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """Give content a path, from which alone OpenSSL loads: in memory, since root file systems are often read-only."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("certificate")
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        yield file.name


@contextmanager
def serving(address: str, port: int, pages: Mapping[str, PageOf], identity: Identity | None) -> Iterator[int]:
    """Serve pages while this is entered, without an identity over HTTP; yield the port, a free one for 0.

    Raises UsageError if it cannot listen there.
    """
    # Errors of clients are not logged: whoever can reach the port could fill the log.
    logging.getLogger("tornado").setLevel(logging.ERROR)
    listener, loop = _listen(address, port), asyncio.new_event_loop()
    over, is_ready = asyncio.Event(), threading.Event()

    async def serve() -> None:
        server = _server(pages, identity)
        server.add_sockets([listener])
        is_ready.set()
        while not over.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), _REFRESH_SECONDS)
                break
            if identity:
                identity.refresh()
        server.stop()
        await asyncio.wait_for(server.close_all_connections(), _TIMEOUT)

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), name="serving", daemon=True)
    thread.start()
    is_ready.wait(_TIMEOUT)
    try:
        yield int(listener.getsockname()[1])
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(_TIMEOUT)
        if not thread.is_alive():
            loop.close()


def _server(pages: Mapping[str, PageOf], identity: Identity | None) -> HTTPServer:
    return _BoundedServer(
        # Probes stay out of the log: one comes every few seconds, for months.
        Application([(".*", _Handler, {"pages": pages})], log_function=lambda _: None),
        ssl_options=identity.context if identity else None,
        idle_connection_timeout=CLIENT_SECONDS,
        body_timeout=CLIENT_SECONDS,
        max_header_size=HEADER_BYTES,
        max_body_size=0,
        max_buffer_size=4 * HEADER_BYTES,
    )


class _BoundedServer(HTTPServer):
    """Closes the oldest connection for a new client: probes end within milliseconds, so that one is slow or idle."""

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
        html = page.html if "text/html" in self.request.headers.get("Accept", "") else None
        self.set_status(page.status)
        self.set_header("Content-Type", "text/html; charset=utf-8" if html else page.content_type)
        scripts = "; script-src 'unsafe-inline'" if html else ""  # a page names its own script by hash
        self.set_header("Content-Security-Policy", f"default-src 'none'; style-src 'unsafe-inline'{scripts}")
        if page.refresh and html:
            self.set_header("Refresh", str(page.refresh))
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Cache-Control", "no-store")
        self.set_header("Vary", "Accept")
        self.finish(html() if html else page.body)

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
        wrong = f"cannot listen on {address or '*'}:{port} (--bind-address, --secure-port): {error.strerror}"
        raise UsageError(f"{wrong}; --secure-port 0 serves nothing") from None
    listener.setblocking(False)
    return listener
