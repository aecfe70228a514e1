"""The proxy on the way to the API server, and the setting that it comes from."""

import os
from collections.abc import Mapping

from rebalancer.foreign.address import without_userinfo

#: In the order in which the `kubernetes` package reads them.
_VARIABLES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")


def named(proxy: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return a proxy's address and the variable that sets it, or the kubeconfig if no variable has this value."""
    setter = next((name for name in _VARIABLES if environ.get(name) == proxy), "proxy-url of the kubeconfig")
    return f"the proxy {without_userinfo(proxy)} ({setter})"
