"""What is served: pages, and health as probes see it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

#: What is wrong, by the name of the check; empty where the check passed.
Checks = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ServedPage:
    """An answer to a GET."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    html: Callable[[], bytes] | None = None  # makes the same for a browser, which asks for text/html
    refresh: int = 0  # seconds after which a browser asks again; 0 for never


#: Makes a page; the argument says whether the request has `?verbose`.
PageOf = Callable[[bool], ServedPage]


def health_page(name: str, checks: Checks, *, verbose: bool) -> ServedPage:
    """Return 200 and `ok`, or 500 and every check with its outcome, in the format of the Kubernetes components."""
    bad = any(checks.values())
    if not bad and not verbose:
        return ServedPage(200, b"ok")
    lines = [f"[-]{check} failed: {wrong}" if wrong else f"[+]{check} ok" for check, wrong in checks.items()]
    lines.append(f"{name} check {'failed' if bad else 'passed'}")
    return ServedPage(500 if bad else 200, ("\n".join(lines) + "\n").encode())
