"""Queries Prometheus through prometheus-api-client, all of a cycle about one time, and finds the nodes of series."""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException

from rebalancer.cluster.node import Node
from rebalancer.errors import SourceError
from rebalancer.policy.usage import NodeLabel, Prometheus
from rebalancer.untrusted.documents import Unreadable, decode_json
from rebalancer.usage.history import RangeAnswer, RangeSeries
from rebalancer.usage.session import UNUSABLE, Auth, Session, address_of, plain

#: A window has this many steps, unless they would be shorter than a usual scrape interval.
_STEPS = 30
_SHORTEST_STEP = 15

_PORT = re.compile(r"(?<=.):\d+$")
_HOSTNAME_LABEL = "kubernetes.io/hostname"


class VectorElement(msgspec.Struct, frozen=True):
    """One element of an instant vector; `value` may be any float, even NaN."""

    metric: Mapping[str, str]
    value: float

    def __str__(self) -> str:
        return "{" + ", ".join(f'{name}="{value}"' for name, value in sorted(self.metric.items())) + "}"


#: Returns the instant vector of a query at the time of the cycle; raises SourceError.
Ask = Callable[[str], tuple[VectorElement, ...]]


class _Element(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Matrix(msgspec.Struct):
    result: list[RangeSeries]


class _RangeBody(msgspec.Struct):
    data: _Matrix
    warnings: list[str] = []


class _Words(msgspec.Struct):
    status: str = ""
    error: str = ""
    warnings: list[str] = msgspec.field(default_factory=list)


class PromQL:
    """A Prometheus at the time of a cycle, which keeps each answer; raises SourceError if it cannot be trusted."""

    def __init__(
        self,
        provider: Prometheus,
        auth: Auth | None,
        service_account: Path | None,
        now: datetime,
        is_ending: Callable[[], bool] = lambda: False,
    ) -> None:
        url = address_of(provider.url).url
        self._session = Session(
            f"Prometheus at {url}",
            provider.timeout.total_seconds(),
            lambda body: _words(body).error or plain(body),
            secrets_over_http=provider.allow_token_over_http,
            is_ending=is_ending,
        )
        self._session.hooks["response"].append(self._note_warnings)
        self._now = {"time": f"{now.timestamp():.3f}"}
        self._connection = PrometheusConnect(url, auth=auth, session=self._session, retry=0)  # `Session` retries
        self._session.adapters.pop(url)  # its own, with connections that cannot be cut short
        self._trust(provider, service_account, url)
        self.warnings, self._said = dict[str, None](), dict[str, None]()  # since that was cleared; by the last answer
        self._answer = ask_once(self._ask)

    def begin(self) -> None:
        """Start the time-out again for the queries that follow."""
        self._session.begin()

    def ask(self, query: str) -> tuple[VectorElement, ...]:
        """Return the instant vector of a query, as `Ask` does."""
        found, said = self._answer(query)
        self.warnings.update(said)
        return found

    def _trust(self, provider: Prometheus, service_account: Path | None, url: str) -> None:
        if provider.ca_file:
            if not Path(provider.ca_file).is_file():
                raise SourceError(f"caFile {provider.ca_file} cannot be read")
            self._session.verify = provider.ca_file
        elif service_account and url.startswith("https://"):
            self._session.trust(service_account / "ca.crt", url)

    def ask_range(self, query: str, start: float, end: float, step: float) -> RangeAnswer:
        """Return a query's series over a time, decoded at once since they are large; raises SourceError without."""
        self.begin()
        asked = {"query": query, "start": f"{start:.0f}", "end": f"{end:.0f}", "step": f"{step:g}"}
        url, auth = f"{self._connection.url}/api/v1/query_range", self._connection.auth
        body = self._session.tries(lambda: self._session.get(url, params=asked, auth=auth).content)
        try:
            found = decode_json(body, _RangeBody)
        except Unreadable as error:
            if _words(body).status != "success":
                raise SourceError(f"what answers at {self._connection.url} is not Prometheus") from error
            raise SourceError(f"the query `{query}` gives no series of numbers") from error
        self.warnings.update(self._said)
        return RangeAnswer(found.data.result, found.warnings)

    def _ask(self, query: str) -> tuple[tuple[VectorElement, ...], dict[str, None]]:
        result = self._session.tries(lambda: self._result(query))
        try:
            elements = msgspec.json.decode(result, type=list[_Element])
            return tuple(VectorElement(each.metric, float(each.value[1])) for each in elements), self._said
        except (msgspec.ValidationError, ValueError) as error:
            raise SourceError(f"the query `{query}` gives no instant vector of numbers: {_shape(result)}") from error

    def _result(self, query: str) -> bytes:
        try:
            return msgspec.json.encode(self._connection.custom_query(query, params=self._now))
        except UNUSABLE:  # nothing has answered
            raise
        except (ValueError, KeyError, TypeError, RecursionError, PrometheusApiClientException) as error:
            raise SourceError(f"what answers at {self._connection.url} is not Prometheus") from error

    def _note_warnings(self, response: Any, *_args: object, **_kwargs: object) -> None:
        texts = _words(response.content).warnings if b'"warnings"' in response.content else ()
        self._said = {f"Prometheus says: {text}": None for text in texts}


def _words(body: bytes) -> _Words:
    try:
        return decode_json(body, _Words)
    except Unreadable:
        return _Words()


def _shape(result: bytes) -> str:
    if result.startswith(b"[{"):
        return "it is a matrix or has histograms"
    return "it is a scalar or text"


K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


def ask_once(ask: Callable[[K], T]) -> Callable[[K], T]:
    """Return a function that asks each question once, and keeps the answer, or the error if there was no answer."""
    outcomes: dict[K, Future[T]] = {}

    def answer(question: K) -> T:
        if question not in outcomes:
            outcome: Future[T] = Future()
            try:
                outcome.set_result(ask(question))
            except SourceError as error:
                outcome.set_exception(error)
            outcomes[question] = outcome
        return outcomes[question].result()

    return answer


@dataclass(frozen=True, slots=True)
class UsageWindow:
    """A period that ends now, divided into steps; a step whose value is NaN or too low is left out.

    Queries over it are subqueries of PromQL: the median of the query `node_load` over 30m is sent as
    `quantile_over_time(0.5, ((node_load) >= 0)[1800s:60s])`.
    `step` is the seconds from one evaluation of a query to the next, `least` the lowest value that counts, in PromQL.
    """

    seconds: int
    step: int
    least: str = "0"

    @classmethod
    def over(cls, time: timedelta, least: str = "0") -> "UsageWindow":
        """Return the window of this length."""
        seconds = round(time / timedelta(seconds=1))
        return cls(seconds, max(_SHORTEST_STEP, seconds // _STEPS), least)

    @property
    def steps(self) -> int:
        """How often a query is evaluated in the window, plus or minus one."""
        return self.seconds // self.step

    def quantile(self, query: str, quantile: float) -> str:
        """Return the query for a quantile of each series."""
        return f"quantile_over_time({quantile:g}, {self._range(query)})"

    def count(self, query: str) -> str:
        """Return the query for the number of values of each series."""
        return f"count_over_time({self._range(query)})"

    def _range(self, query: str) -> str:
        return f"({alone(query)} >= {self.least})[{self.seconds}s:{self.step}s]"


def alone(query: str) -> str:
    """Return a query in parentheses; if it has a comment, the closing parenthesis stands on a line of its own."""
    text = query.strip()
    return f"({text}\n)" if "#" in text else f"({text})"


def timestamp(query: str) -> str:
    """Return the query for the times of the present samples; Prometheus knows these only for plain series."""
    return f"timestamp({alone(query)})"


def without_port(value: str) -> str:
    """Return a host without its port; an IPv6 address has a port only if it stands in brackets."""
    if value.startswith("["):
        return value[1:].partition("]")[0]
    return _PORT.sub("", value) if value.count(":") == 1 else value


class NodeNames:
    """Finds a series' node by a label: `instance="10.0.0.7:9100"`, `match: internalIP` is the one of that address."""

    def __init__(self, nodes: Iterable[Node], by: NodeLabel) -> None:
        self._by = by
        ranked = sorted(nodes, key=lambda node: (node.ready, node.name))  # the last one with an address counts
        self._names = {key: node.name for node in ranked if (key := _key(node, by.match))}

    def of(self, sample: VectorElement) -> str | None:
        """Return the name of the node that a series is about; None if that is not a node of the cluster."""
        return self._names.get(without_port(sample.metric.get(self._by.label, "")))

    def values(self, samples: Iterable[VectorElement], query: str) -> tuple[Mapping[str, float], str]:
        """Return each node's value, and a warning about other series; raises SourceError if a node has two."""
        found: dict[str, VectorElement] = {}
        strangers: list[VectorElement] = []
        for sample in samples:
            name = self.of(sample)
            if name is None:
                strangers.append(sample)
            elif name in found:
                raise SourceError(
                    f"the query `{query.strip()}` gives two series for node {name}: {found[name]} and {sample}; "
                    f"aggregate them, for example with sum by ({self._by.label}) (...)"
                )
            else:
                found[name] = sample
        return {name: sample.value for name, sample in found.items()}, self._about(strangers)

    def _about(self, strangers: list[VectorElement]) -> str:
        if not strangers:
            return ""
        label = self._by.label
        value = strangers[0].metric.get(label)
        first = f"no label {label}" if value is None else f"{label} {value!r}"
        how = f"by {label} = {self._by.match}, the first has {first}"
        return f"{len(strangers)} series are about no node of the cluster {how}"


def _key(node: Node, match: str) -> str:
    if match == "internalIP":
        return node.addresses.get("InternalIP", "")
    if match == "hostname":
        return node.addresses.get("Hostname") or node.labels.get(_HOSTNAME_LABEL, "")
    return node.name
