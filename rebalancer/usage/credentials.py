"""How a Prometheus knows us: a token from a file, a Secret or the pod's service account, or a password."""

from collections.abc import Callable
from pathlib import Path

from requests import PreparedRequest
from requests.auth import AuthBase, HTTPBasicAuth

from rebalancer.args.providers import Prometheus, SecretReference
from rebalancer.usage.doubt import SourceError

#: Reads a token from a Secret; raises SourceError.
ReadSecret = Callable[[SecretReference], str]


class _Bearer(AuthBase):
    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def credentials(prometheus: Prometheus, service_account: Path | None, read_secret: ReadSecret) -> AuthBase | None:
    """Return what to send along, freshly read; None where that is nothing.

    Args:
        prometheus: the provider.
        service_account: the folder with the pod's token; None outside a pod.
        read_secret: reads the token from its Secret.

    Raises:
        SourceError: they cannot be read, or would go over plain http.
    """
    plain = prometheus.url.startswith("http://") and not prometheus.allow_token_over_http
    if plain and prometheus.credentials:
        raise SourceError(
            f"{prometheus.credentials[0]} is not sent over plain http to {prometheus.url}: "
            "use https, or set allowTokenOverHTTP"
        )
    if prometheus.basic_auth:
        return HTTPBasicAuth(prometheus.basic_auth.username, _read(Path(prometheus.basic_auth.password_file)))
    if prometheus.token_file:
        return _bearer(_read(Path(prometheus.token_file)), prometheus.token_file)
    if prometheus.auth_token and prometheus.auth_token.secret_reference:
        secret = prometheus.auth_token.secret_reference
        return _bearer(read_secret(secret).strip(), f"the Secret {secret.namespace}/{secret.name}")
    if service_account and not plain:
        token = service_account / "token"
        return _bearer(_read(token), str(token))
    return None


def _bearer(token: str, place: str) -> AuthBase:
    if not (token and token.isascii() and token.isprintable()):
        raise SourceError(f"{place} holds no token")
    return _Bearer(token)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SourceError(f"{path} cannot be read: {reason}") from error
