"""What the API server's answers mean: the one place that turns HTTP into errors.

ClusterError
├── Unreachable
│   └── Transient     no usable answer now; a later try may get one
├── Forbidden         403
├── NoCredentials     401, also with fresh credentials (raised by the client)
└── Rejected          any other answer that is not a success
    ├── NotFound      404
    └── Expired       410: the continue token is too old
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.client import responses
from typing import TypeVar

import msgspec

from rebalancer.errors import ClusterError, Forbidden, Unreachable
from rebalancer.untrusted.documents import Unreadable, decode_json

T = TypeVar("T")
TEXT_LIMIT = 256  # texts from the server are cut here, so that neither a log nor a report is flooded by one of them


class Transient(Unreachable):
    """No usable answer now; a later try may get one."""

    def __init__(
        self, message: str, *, retry_after: float | None = None, connected: bool = True, maybe_done: bool = False
    ) -> None:
        self.retry_after = retry_after  # seconds that the server asks to wait; None where it does not say
        self.connected = connected  # whether a connection was established
        self.maybe_done = maybe_done  # whether the server may have carried out the request
        super().__init__(message)


class Rejected(ClusterError):  # noqa: N818  named like the rest of the tree
    """The API server refuses a request, and another try would not help; the message quotes the server."""


class NotFound(Rejected):
    """The object is not there, or the API server does not serve this kind."""


class Expired(Rejected):
    """The continue token of a list is too old."""


class _Cause(msgspec.Struct, frozen=True):
    reason: str = ""
    message: str = ""


class _Kinded(msgspec.Struct):
    kind: str = ""


class _Details(msgspec.Struct, frozen=True):
    kind: str = ""  # of what is refused, as the server calls it: `pods`, `poddisruptionbudget`
    causes: tuple[_Cause, ...] = ()


class Status(msgspec.Struct, frozen=True):
    """What the API server says of a request; empty where the answer's body is something else."""

    kind: str = ""
    status: str = ""
    message: str = ""
    details: _Details = _Details()

    def has_cause(self, reason: str) -> bool:
        """Return whether one of the causes is `reason`."""
        return any(cause.reason == reason for cause in self.details.causes)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP answer, read to its end; `method` and `path` say what was asked for."""

    method: str
    path: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_success(self) -> bool:
        """Whether the server carried out the request."""
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES

    def demanded(self) -> bytes:
        """Return the body; raise the `error` if the answer is not a success."""
        if not self.is_success:
            raise self.error()
        return self.body

    @property
    def is_outdated(self) -> bool:
        """Whether the object has changed since it was read: a 422 that names no field is of a test in a JSON patch."""
        is_of_test = self.status == HTTPStatus.UNPROCESSABLE_ENTITY and not self.explanation().details.causes
        return is_of_test or self.status == HTTPStatus.CONFLICT

    def confirm(self, kind: str) -> None:
        """Raise what the answer to a write means, unless it is a success with the object, of this kind.

        A page of a proxy, in place of the object, says nothing about the write.
        """
        try:
            is_confirmed = decode_json(self.demanded(), _Kinded).kind == kind
        except Unreadable:
            is_confirmed = False
        if not is_confirmed:
            raise Transient(
                f"the API server does not answer {self.method} {self.path} with the {kind}", maybe_done=True
            )

    def error(self) -> ClusterError:
        """Return the error for a request whose answer is not a success."""
        if self.status == HTTPStatus.FORBIDDEN:
            verb, resource = verb_and_resource(self.method, self.path)
            return Forbidden(f"no permission to {verb} {resource}: {self.text()}")
        message = f"the API server answers {self.status} to {self.method} {self.path}: {self.text()}"
        # The server or a proxy has failed; the request may have taken effect nevertheless.
        is_broken = self.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        if is_broken or self.status == HTTPStatus.TOO_MANY_REQUESTS:
            return Transient(message, retry_after=self.retry_after(), maybe_done=is_broken)
        if self.status == HTTPStatus.NOT_FOUND:
            return NotFound(message)
        return Expired(message) if self.status == HTTPStatus.GONE else Rejected(message)

    def explanation(self) -> Status:
        """Return the Status in the body; an empty one when the body is something else (a proxy's page)."""
        try:
            status = decode_json(self.body, Status)
        except Unreadable:
            return Status()
        return status if status.kind == "Status" else Status()

    def text(self) -> str:
        """Return the server's message, cut to `TEXT_LIMIT`, or the name of the status code."""
        return cut(self.explanation().message) or responses.get(self.status, "no explanation")

    def retry_after(self) -> float | None:
        """Return the seconds to wait before the next try (RFC 9110, 10.2.3); None where the server does not say."""
        text = self.headers.get("Retry-After", "").strip()
        return float(text) or None if text.isascii() and text.isdigit() else None


def is_not_found(answer: HttpAnswer, plural: str = "pods") -> bool:
    """Return whether the API server says that there is no such object; a 404 from a proxy does not count."""
    return answer.status == HTTPStatus.NOT_FOUND and answer.explanation().details.kind == plural


def decoded(body: bytes, form: type[T], path: str, what: str) -> T:
    """Return the object in an answer; raise Rejected if it has another form (messages call it `what`)."""
    try:
        return decode_json(body, form)
    except Unreadable as error:
        raise Rejected(f"the API server does not answer {path} with {what}: {error}") from error


def verb_and_resource(method: str, path: str) -> tuple[str, str]:
    """Return what a role must allow for a request: `("create", "pods/eviction")`, `poddisruptionbudgets.policy`."""
    matched = re.fullmatch(
        r"/(?:api|apis/(?P<group>[^/]+))/[^/]+(?:/namespaces/[^/]+(?=/))?"
        r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<sub>[^/]+))?)?",
        path,
    )
    if not matched:
        return method.lower(), path
    group, plural, name, sub = matched["group"], matched["plural"], matched["name"], matched["sub"]
    resource = (f"{plural}.{group}" if group else plural) + (f"/{sub}" if sub else "")
    verb = {"POST": "create", "PUT": "update", "PATCH": "patch"}.get(method, "get" if name else "list")
    return verb, resource


def cut(text: str) -> str:
    """Return a text from the server on one line, cut to `TEXT_LIMIT` characters."""
    line = " ".join(text.split())
    return line if len(line) <= TEXT_LIMIT else line[: TEXT_LIMIT - 1] + "…"
