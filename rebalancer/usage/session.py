"""HTTP requests with a deadline, their credentials, and errors that a person can read."""

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

import requests
import tenacity
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError, LocationParseError, ReadTimeoutError

from rebalancer.clock import boottime
from rebalancer.errors import SourceError
from rebalancer.policy.usage import Prometheus, SecretReference
from rebalancer.untrusted.address import Address, basic, credentials_for, read_address, without_userinfo
from rebalancer.untrusted.documents import LARGEST_PAGE, Unreadable, check_size, read_bounded
from rebalancer.untrusted.exchange import GivenUp, cuttable, within, words_of

T = TypeVar("T")

_TRIES = 3
_CHUNK = 1 << 16
_LONGEST_TEXT = 300
#: The largest file with a token or a password, in bytes.
_LONGEST_SECRET = 1 << 20
#: Raised where the URL of the source or of a proxy cannot be used.
UNUSABLE = (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, LocationParseError)
_TRANSIENT = (429, 500, 502, 503, 504)  # too many requests, and what a server or a proxy cannot do now


#: Puts credentials into a request.
Auth = Callable[[requests.PreparedRequest], requests.PreparedRequest]
#: Reads a token from a Secret; raises SourceError.
ReadSecret = Callable[[SecretReference], str]


class _TransientError(SourceError):
    """No usable answer now; a later try may get one."""


class Session(requests.Session):
    """Sends requests until a deadline, and turns every failure into a SourceError."""

    def __init__(
        self,
        server: str,  # the name of the server in messages, with its URL
        seconds: float,  # from one `begin` to the end of the last answer
        explain: Callable[[bytes], str],  # returns the server's message from the body of a refusal
        *,
        # The credentials for requests that have none of their own; no others are ever sent, in particular none from
        # `~/.netrc`.
        auth: Auth | None = None,
        secrets_over_http: bool = False,  # whether credentials may go over plain http
        tries: int = _TRIES,  # how often a request is sent at most
        # What to change where it is not trusted, and where it is too slow.
        cures: tuple[str, str] = ("; caFile names certificates", " (its timeout in metricsProviders)"),
        is_ending: Callable[[], bool] = lambda: False,  # whether the program is to end: then a request is hurried
    ) -> None:
        self._is_ending = is_ending
        self._tries = tries
        self._distrust_cure, self._cure = cures
        super().__init__()
        self.mount("https://", _Adapter())
        self.mount("http://", _Adapter())
        self._server = server
        self._seconds = seconds
        self._explain = explain
        self._secrets_over_http = secrets_over_http
        self.auth = auth or (lambda request: request)  # without any, requests looks for some in the home directory
        self._until = 0.0
        self.hooks["response"].append(self._settle)
        self.begin()

    def trust(self, certificates: Path | None, url: str) -> None:
        """Trust the system's certificates, and these; raises SourceError if they cannot be read."""
        context = ssl.create_default_context()
        try:
            if certificates:
                context.load_verify_locations(certificates)
        except OSError as error:
            raise SourceError(f"the certificates in {certificates} cannot be read: {error}") from error
        self.mount(url, _Adapter(context))

    def begin(self) -> None:
        """Start the time until the deadline again."""
        self._until = boottime() + self._seconds

    def tries(self, ask: Callable[[], T]) -> T:
        """Call a function that sends a request, again if it may help; raises SourceError without a usable answer."""
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_TransientError),
            stop=self._is_over,
            wait=tenacity.wait_random_exponential(multiplier=0.5, max=4),
            reraise=True,
        )
        return retrying(self._in_words()(ask))

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        """Send a request that gives up at the deadline; raises SourceError if credentials would go over plain http."""
        is_plain = not str(request.url).startswith("https://")  # a prepared URL has a lower-case scheme, no blanks
        if is_plain and "Authorization" in request.headers and not self._secrets_over_http:
            raise SourceError(f"credentials are not sent over plain http to {self._server}: use https")
        left = max(self._until - boottime(), 0.001)
        send = partial(super().send, request, **{**kwargs, "timeout": left})
        try:
            return within(left, send, self._is_ending)
        except GivenUp:
            ended = f"{self._server} is not waited for any longer: the run is told to end"
            raise SourceError(ended if self._is_ending() else self._too_slow()) from None

    def rebuild_auth(self, prepared_request: requests.PreparedRequest, response: requests.Response) -> None:
        """Drop the credentials where a redirect leads to another server; never add any."""
        if self.should_strip_auth(str(response.request.url), str(prepared_request.url)):
            prepared_request.headers.pop("Authorization", None)

    def _is_over(self, state: tenacity.RetryCallState) -> bool:
        is_late = boottime() + state.upcoming_sleep >= self._until
        return state.attempt_number >= self._tries or is_late or self._is_ending()

    def _settle(self, response: requests.Response, *_args: object, **_kwargs: object) -> None:
        chunks = []
        size = 0
        while chunk := response.raw.read1(_CHUNK, decode_content=True):
            chunks.append(chunk)
            size += len(chunk)
            check_size(size, LARGEST_PAGE)
        body = b"".join(chunks)
        # The session itself would read the body without a deadline, and has no public way to set it.
        response._content = body  # noqa: SLF001
        is_success = HTTPStatus.OK <= response.status_code < HTTPStatus.MULTIPLE_CHOICES
        if not is_success and not response.is_redirect:
            raise self._refusal(response.status_code, self._explain(body)[:_LONGEST_TEXT])

    def _refusal(self, status: int, text: str) -> SourceError:
        said = f"HTTP {status}" + (f", {text}" if text else "")
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return SourceError(f"{self._server} does not accept the credentials ({said})")
        if status == HTTPStatus.NOT_FOUND:
            return SourceError(f"{self._server} has nothing at this address ({said}): check the url")
        return (_TransientError if status in _TRANSIENT else SourceError)(f"{self._server} refuses: {said}")

    def _too_slow(self) -> str:
        return f"{self._server} did not answer within {self._seconds:g} s{self._cure}"

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except requests.exceptions.SSLError as error:
            raise SourceError(f"{self._server} is not trusted: {words_of(error)}{self._distrust_cure}") from error
        except (requests.Timeout, TimeoutError, ReadTimeoutError) as error:
            raise SourceError(self._too_slow()) from error
        except UNUSABLE:
            # Their text repeats the URL, or that of a proxy, which may contain a password.
            raise SourceError(f"{self._server} cannot be asked: its URL or that of a proxy cannot be used") from None
        except (requests.ConnectionError, HTTPError) as error:  # the latter while a body is read
            raise _TransientError(f"{self._server} does not answer: {without_userinfo(words_of(error))}") from error
        except (requests.RequestException, OSError) as error:
            raise SourceError(f"{self._server} cannot be asked: {without_userinfo(str(error))}") from error
        except Unreadable as error:
            raise SourceError(f"{self._server} gives an answer that is not read: {error}") from error


class _Adapter(HTTPAdapter):
    """Connects with the given TLS context, or the usual one, and in a way that can be cut short."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self._tls = {"ssl_context": context} if context else {}
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **{**kwargs, **self._tls})
        cuttable(self.poolmanager)

    def proxy_headers(self, proxy: str) -> dict[str, str]:
        """Return the credentials in a proxy's URL; requests itself takes Latin-1, which has no euro sign."""
        return credentials_for(proxy)

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        return cuttable(super().proxy_manager_for(*args, **{**kwargs, **self._tls}))


def plain(body: bytes) -> str:
    """Return the first line of a body that is plain text; empty if it is a page or a document."""
    lines = body.decode(errors="replace").strip().splitlines()
    return "" if not lines or lines[0].startswith(("<", "{")) else lines[0]


def credentials(prometheus: Prometheus, service_account: Path | None, read_secret: ReadSecret) -> Auth | None:
    """Read and return the credentials to send, None if there are none; raises SourceError if they cannot be used."""
    address = address_of(prometheus.url)
    plain = not (address.is_encrypted or prometheus.allow_token_over_http)
    given = (*prometheus.credentials, *(["what the url has before its @"] if address.has_userinfo else []))
    if plain and given:
        raise SourceError(
            f"{given[0]} is not sent over plain http to {address.url}: use https, or set allowTokenOverHTTP"
        )
    if prometheus.basic_auth:
        password = _read(Path(prometheus.basic_auth.password_file))
        return _sending(basic(prometheus.basic_auth.username, password))
    if prometheus.token_file:
        return _bearer(_read(Path(prometheus.token_file)), prometheus.token_file)
    if prometheus.auth_token:
        secret = prometheus.auth_token.secret_reference
        return _bearer(read_secret(secret).strip(), f"the Secret {secret.namespace}/{secret.name}")
    if address.has_userinfo:
        return from_userinfo(address)
    if service_account and not plain:
        token = service_account / "token"
        return _bearer(_read(token), str(token))
    return None


def address_of(url: str) -> Address:
    """Return the address of a source of usage; raises SourceError if the URL cannot be used."""
    try:
        return read_address(url)
    except ValueError as error:
        raise SourceError(f"a source of usage cannot be asked: {error}") from None


def from_userinfo(address: Address) -> Auth | None:
    """Return the credentials in a URL; None where it has none."""
    return _sending(basic(address.username, address.password)) if address.has_userinfo else None


def _bearer(token: str, place: str) -> Auth:
    if not (token and token.isascii() and token.isprintable()):
        raise SourceError(f"{place} holds no token")
    return _sending(f"Bearer {token}")


def _sending(authorization: str) -> Auth:
    def send(request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = authorization
        return request

    return send


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return read_bounded(file, _LONGEST_SECRET).decode().strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SourceError(f"{path} cannot be read: {reason}") from error
