"""The proxy on the way to the API server, by the name of what sets it."""

import os
from collections.abc import Mapping

from rebalancer.foreign.address import without_userinfo

#: In the order in which the `kubernetes` package looks at them.
_VARIABLES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")


def named(proxy: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return a proxy's address with the variable that sets it; the kubeconfig does where none has this value."""
    setter = next((name for name in _VARIABLES if environ.get(name) == proxy), "proxy-url of the kubeconfig")
    return f"the proxy {without_userinfo(proxy)} ({setter})"
