"""TLS of the server, with the given certificate, read again when it changes, or a self-signed one."""

import logging
import os
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from rebalancer.errors import UsageError
from rebalancer.telemetry.checks import TlsSettings

_LOG = logging.getLogger(__name__)
_VALID_FOR = timedelta(days=3 * 365)
_VERSIONS = {
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
_SUITES_OF_TLS_1_3 = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")


class Identity:
    """The server's TLS context, with its certificate.

    Raises:
        UsageError: the settings cannot be used.
    """

    def __init__(self, settings: TlsSettings) -> None:
        if bool(settings.cert_file) != bool(settings.key_file):
            raise UsageError("--tls-cert-file and --tls-private-key-file go together")
        self._settings = settings
        self.context = _context(settings)
        self._content: tuple[bytes, ...] = ()
        if settings.cert_file:
            self._load()
        else:
            with _as_file(self_signed(datetime.now(UTC))) as path:
                self.context.load_cert_chain(path)

    def refresh(self) -> None:
        """Load the files again if they have changed; if they cannot be used, log a warning and keep the old ones."""
        if not self._settings.cert_file:
            return
        try:
            self._load()
        except UsageError as error:
            _LOG.warning("%s; the certificate of before is still served", error)

    def _load(self) -> None:
        files = (self._settings.cert_file, self._settings.key_file)
        try:
            content = tuple(Path(file).read_bytes() for file in files)
            if content != self._content:
                _context(self._settings).load_cert_chain(*files)  # a bad pair must not touch the context in use
                self.context.load_cert_chain(*files)
        except OSError as error:  # ssl.SSLError is one
            raise UsageError(f"the certificate in {' and '.join(files)} cannot be used: {error}") from error
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


def _context(settings: TlsSettings) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if settings.min_version:
        if settings.min_version not in _VERSIONS:
            raise UsageError(f"--tls-min-version {settings.min_version!r}: there are {', '.join(_VERSIONS)}")
        context.minimum_version = _VERSIONS[settings.min_version]
    if settings.cipher_suites:
        context.set_ciphers(":".join(_offered(settings.cipher_suites)))
    return context


def _offered(suites: Sequence[str]) -> list[str]:
    """Return OpenSSL's names of the suites of TLS 1.2 that it offers, with a warning about the others.

    Raises:
        UsageError: it offers none of them.
    """
    # TLS 1.3 has suites of its own, which cannot be chosen: the descheduler accepts their names and goes on.
    chosen = [suite for suite in suites if suite not in _SUITES_OF_TLS_1_3]
    unknown = [suite for suite in chosen if not _is_offered(_openssl_name(suite))]
    if len(unknown) == len(chosen):
        raise UsageError(
            f"--tls-cipher-suites {','.join(suites)}: OpenSSL offers none of them for TLS 1.2; "
            "for TLS 1.3 alone give --tls-min-version VersionTLS13 instead"
        )
    if unknown:
        _LOG.warning("--tls-cipher-suites: OpenSSL does not offer %s here; the others are served", ", ".join(unknown))
    return [_openssl_name(suite) for suite in chosen if suite not in unknown]


def _is_offered(name: str) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(name)
    except ssl.SSLError:
        return False
    return True


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
    """Give content a path while it is read: OpenSSL loads a certificate only from a path.

    The content stays in memory where the system can do that: a container's root file system is often read-only.
    """
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
