"""The proxy on the way to the API server, and the setting that it comes from."""

import os
from collections.abc import Mapping

#: In the order in which the `kubernetes` package reads them.
_VARIABLES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")


def named(proxy: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return a proxy's address and the variable that sets it, or the kubeconfig if no variable has this value.

    Everything before the last `@` may be a password, and is not shown.
    """
    setter = next((name for name in _VARIABLES if environ.get(name) == proxy), "proxy-url of the kubeconfig")
    scheme, slashes, rest = proxy.partition("//") if "//" in proxy else ("", "", proxy)
    return f"the proxy {scheme}{slashes}{rest.rpartition('@')[2]} ({setter})"


def trouble_with(proxy: str) -> str:
    """Return why a connection through a proxy cannot be set up, and the cure."""
    scheme = proxy.partition("://")[0].lower()
    if scheme.startswith("socks"):
        return f"{named(proxy)} is a SOCKS proxy: install the Python package PySocks, or use an HTTP proxy"
    return f"{named(proxy)} cannot be used: its address must be like http://HOST:PORT"
