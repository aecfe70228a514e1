"""What is served, and how: pages, health as probes see it, and the settings of TLS."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

#: What is wrong, by the name of the check; empty where the check passed.
Checks = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ServedPage:
    """An answer to a GET.

    Attributes:
        html: the same for a browser, which asks for text/html; empty where there is no such form.
        scripted: whether that form has a script of its own, which its own policy names by hash.
        refresh: seconds after which a browser asks again; 0 for never.
    """

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    html: bytes = b""
    scripted: bool = False
    refresh: int = 0


#: Makes a page; the argument says whether the request has `?verbose`.
PageOf = Callable[[bool], ServedPage]


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """How to serve TLS; names as on the command line.

    Attributes:
        cert_file: a PEM file with the certificate and its chain; empty for a self-signed one, made at the start.
        key_file: a PEM file with its key.
        min_version: `VersionTLS12` or `VersionTLS13`; empty for TLS 1.2.
        cipher_suites: for TLS 1.2, by their OpenSSL or IANA names; empty for the default ones.
    """

    cert_file: str = ""
    key_file: str = ""
    min_version: str = ""
    cipher_suites: Sequence[str] = ()


def health_page(name: str, checks: Checks, *, verbose: bool) -> ServedPage:
    """Return 200 and `ok`, or 500 and every check with its outcome, in the format of the Kubernetes components.

    Args:
        name: of the page, like `healthz`.
        checks: the outcome of each check.
        verbose: whether to name the checks even if all have passed.
    """
    bad = any(checks.values())
    if not bad and not verbose:
        return ServedPage(200, b"ok")
    lines = [f"[-]{check} failed: {wrong}" if wrong else f"[+]{check} ok" for check, wrong in checks.items()]
    lines.append(f"{name} check {'failed' if bad else 'passed'}")
    return ServedPage(500 if bad else 200, ("\n".join(lines) + "\n").encode())
