"""Which API server a connection leads to, and what identifies it: this must not change during a run."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

#: What each part is called in a kubeconfig.
_NAMES = {
    "server": "server",
    "authority": "certificate-authority",
    "verified": "insecure-skip-tls-verify",
    "server_name": "tls-server-name",
    "proxy": "proxy-url",
}


class Settings(Protocol):
    """The fields of the `kubernetes` package's configuration that are used here."""

    host: str
    ssl_ca_cert: str | None
    verify_ssl: bool
    tls_server_name: str | None
    proxy: str | None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An API server.

    Attributes:
        server: its address.
        authority: a digest of the certificates that vouch for it; empty for those that the system trusts.
        verified: whether its certificate is checked.
        server_name: the name in its certificate, where that is not the address.
        proxy: the address of the proxy on the way to it; empty for none.
    """

    server: str
    authority: str
    verified: bool
    server_name: str
    proxy: str

    def difference(self, other: "Endpoint") -> str:
        """Return the settings in which the two differ, by their names in a kubeconfig; empty if they are the same."""
        different = [_NAMES[part] for part in _NAMES if getattr(self, part) != getattr(other, part)]
        return ", ".join(different)


def endpoint_of(settings: Settings) -> Endpoint:
    """Return the API server that these settings lead to.

    Raises:
        OSError: the file with the certificates cannot be read.
    """
    file = settings.ssl_ca_cert
    return Endpoint(
        server=settings.host.rstrip("/"),
        authority=hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else "",
        verified=bool(settings.verify_ssl),
        server_name=settings.tls_server_name or "",
        proxy=settings.proxy or "",
    )
