"""Credentials for Prometheus: a token from a file, a Secret or the pod's service account, or a password."""

from collections.abc import Callable
from pathlib import Path

from requests import PreparedRequest
from requests.auth import AuthBase, HTTPBasicAuth

from rebalancer.errors import SourceError
from rebalancer.policy.providers import Prometheus, SecretReference
from rebalancer.untrusted.address import Address, read_address
from rebalancer.untrusted.documents import read_bounded

#: The largest file with a token or a password, in bytes.
_LONGEST_SECRET = 1 << 20

#: Reads a token from a Secret; raises SourceError.
ReadSecret = Callable[[SecretReference], str]


class _Bearer(AuthBase):
    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def credentials(prometheus: Prometheus, service_account: Path | None, read_secret: ReadSecret) -> AuthBase | None:
    """Read and return the credentials to send; None where there are none.

    Args:
        prometheus: the provider.
        service_account: the folder with the pod's token; None outside a pod.
        read_secret: reads the token from its Secret.

    Raises:
        SourceError: they cannot be read, or would go over plain http.
    """
    address = address_of(prometheus.url)
    plain = not (address.is_encrypted or prometheus.allow_token_over_http)
    given = (*prometheus.credentials, *(["what the url has before its @"] if address.has_userinfo else []))
    if plain and given:
        raise SourceError(
            f"{given[0]} is not sent over plain http to {address.url}: use https, or set allowTokenOverHTTP"
        )
    if prometheus.basic_auth:
        return HTTPBasicAuth(prometheus.basic_auth.username, _read(Path(prometheus.basic_auth.password_file)))
    if prometheus.token_file:
        return _bearer(_read(Path(prometheus.token_file)), prometheus.token_file)
    if prometheus.auth_token and prometheus.auth_token.secret_reference:
        secret = prometheus.auth_token.secret_reference
        return _bearer(read_secret(secret).strip(), f"the Secret {secret.namespace}/{secret.name}")
    if address.has_userinfo:
        return from_userinfo(address)
    if service_account and not plain:
        token = service_account / "token"
        return _bearer(_read(token), str(token))
    return None


def address_of(url: str) -> Address:
    """Return the address of a source of usage.

    Raises:
        SourceError: the URL cannot be used.
    """
    try:
        return read_address(url)
    except ValueError as error:
        raise SourceError(f"a source of usage cannot be asked: {error}") from None


def from_userinfo(address: Address) -> AuthBase | None:
    """Return the credentials in a URL; None where it has none."""
    return HTTPBasicAuth(address.username, address.password) if address.has_userinfo else None


def _bearer(token: str, place: str) -> AuthBase:
    if not (token and token.isascii() and token.isprintable()):
        raise SourceError(f"{place} holds no token")
    return _Bearer(token)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return read_bounded(file, _LONGEST_SECRET).decode().strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SourceError(f"{path} cannot be read: {reason}") from error
