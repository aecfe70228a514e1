"""The proxy on the way to the API server, and the setting that it comes from."""

import base64
import os
from collections.abc import Mapping
from urllib.parse import unquote

from rebalancer.untrusted.address import AmbiguousUserinfo, read_plainly, shown

#: In the order in which the `kubernetes` package reads them.
_VARIABLES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")


def named(proxy: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return a proxy's address without a password, and the variable that sets it, or the kubeconfig."""
    setter = next((name for name in _VARIABLES if environ.get(name) == proxy), "proxy-url of the kubeconfig")
    return f"the proxy {shown(proxy)} ({setter})"


def credentials_for(proxy: str) -> dict[str, str]:
    """Return the header that tells an HTTP proxy who we are; empty if its address has no user, or cannot be read.

    Only the proxy gets it.  A SOCKS proxy is told in another way, and the header would reach the API server.
    """
    if proxy.partition("://")[0].lower() not in ("http", "https"):
        return {}
    try:
        parts = read_plainly(proxy)
    except AmbiguousUserinfo:  # no error if NO_PROXY makes the proxy superfluous
        return {}
    user, _, password = ((parts and parts["userinfo"]) or "").partition(":")
    if not user and not password:
        return {}
    both = f"{unquote(user)}:{unquote(password)}".encode()
    return {"Proxy-Authorization": f"Basic {base64.b64encode(both).decode()}"}


def unauthorised(proxy: str) -> str:
    """Return what a proxy's answer 407 means, and the cure."""
    if credentials_for(proxy):
        return (
            f"{named(proxy)} does not accept the user and password in its address (407 Proxy Authentication Required): "
            "check them; characters like @ and / are written %40 and %2F there"
        )
    return (
        f"{named(proxy)} asks for a user and a password (407 Proxy Authentication Required): "
        "write them into its address, like http://USER:PASSWORD@HOST:PORT"
    )


def trouble_with(proxy: str) -> str:
    """Return why a connection through a proxy cannot be set up, and the cure."""
    try:
        read_plainly(proxy)
    except AmbiguousUserinfo as error:
        return f"{named(proxy)}: {error}"
    scheme = proxy.partition("://")[0].lower()
    if scheme.startswith("socks"):
        return f"{named(proxy)} is a SOCKS proxy: install the Python package PySocks, or use an HTTP proxy"
    return f"{named(proxy)} cannot be used: its address must be like http://HOST:PORT"
