"""Why a request got no answer: the message names the part that is missing."""

import ssl
from collections.abc import Iterator
from http.client import BadStatusLine

from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, ProxyError, SSLError

from rebalancer.errors import ClusterError, Unreachable
from rebalancer.kube.answers import Transient, cut
from rebalancer.kube.proxies import named, unauthorised

#: In the words of `http.client` about a proxy's answer 407 to CONNECT.
_ASKS_WHO_WE_ARE = "Tunnel connection failed: 407"


def no_answer(error: HTTPError, server: str, proxy: str, *, sent: bool = False) -> ClusterError:
    """Return our error for an error of urllib3.

    Args:
        error: urllib3's error.
        server: the API server, in words.
        proxy: the address of the proxy on the way; empty for none.
        sent: whether a body was sent.  urllib3 does not tell: a connection through a proxy that breaks after that is
            the same `ProxyError` as one that the proxy refuses.
    """
    cause = error.args[0] if error.args else None
    if isinstance(error, SSLError) and isinstance(cause, ssl.SSLCertVerificationError):
        return Unreachable(
            f"the certificate of {server} is not trusted: {cut(cause.verify_message)}. "
            "Check certificate-authority in the kubeconfig, or tls-server-name."
        )
    words = _in_words(error)
    if proxy and _ASKS_WHO_WE_ARE in words:
        return Unreachable(unauthorised(proxy))
    if proxy and isinstance(error, ProxyError):
        broken, refused = f"the connection through {named(proxy)} broke", f"{named(proxy)} refuses to connect us"
        words = f"{broken if _is_broken_off(error) else refused}: {words}"
    return Transient(f"no answer from {server}: {words}", connected=sent or _is_connected(error), maybe_done=sent)


def _is_connected(error: HTTPError) -> bool:
    """Return whether the server was reached, as far as is known."""
    if isinstance(error, ProxyError):
        return _is_broken_off(error)
    if isinstance(error, SSLError):
        # When a server dies, TLS ends without a closing message; any other TLS error comes from wrong settings.
        return bool(error.args) and isinstance(error.args[0], ssl.SSLEOFError)
    return not isinstance(error, NewConnectionError | ConnectTimeoutError)


def _is_broken_off(error: ProxyError) -> bool:
    """Return whether a connection through a proxy broke; one that could not be made is an error of urllib3."""
    return isinstance(error.original_error, ConnectionError)


def _in_words(error: HTTPError) -> str:
    """Return what went wrong without urllib3's object names."""
    causes = list(_causes_of(error))
    if system := next((each for each in causes if isinstance(each, OSError)), None):
        return cut(system.strerror or str(system))
    if strange := next((each for each in causes if isinstance(each, BadStatusLine)), None):
        return cut(f"the answer is not HTTP, but begins with {str(strange)!r}")
    return cut(str(error.args[0]) if error.args else type(error).__name__)


def _causes_of(error: BaseException) -> Iterator[BaseException]:
    """Yield what an error was made of, the nearest first: urllib3 wraps errors more than once."""
    for each in (*error.args, error.__cause__, error.__context__):
        if isinstance(each, BaseException):
            yield each
            yield from _causes_of(each)
