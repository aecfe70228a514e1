"""Small servers of usage for tests: real HTTP over loopback, in threads of their own.

    with FakePrometheus([sample("n1", 0.5)]) as server:   # the same vector for every query
        server.url
        server.queries                                    # what was asked

    with FakeLoadWatcher({"n1": {"CPU": 40, "Memory": 60}}, ended=NOW) as server: ...

`answers` replaces what is served: a function from the request to a Reply.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from tests.fake_api_server import CERTIFICATE
from tests.fake_http import HttpServer, Reply, Request


class FakeServer:
    """Serves what `answer` returns, by default that all is well, and keeps the requests."""

    def __init__(self, *, tls: bool = False) -> None:
        self.requests: list[Request] = []
        self.answers: Callable[[Request], Reply] | None = None
        self.certificate: Path = CERTIFICATE
        self._http = HttpServer(self._reply, CERTIFICATE if tls else None)

    def __enter__(self) -> Self:
        self._http.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.__exit__()

    @property
    def url(self) -> str:
        return self._http.url

    def _reply(self, request: Request) -> Reply:
        self.requests.append(request)
        return (self.answers or self.answer)(request)

    def answer(self, _: Request) -> Reply:
        return Reply(200, "")


def sample(node: str, value: float | str, label: str = "instance", time: float = 0.0, **labels: str) -> dict[str, Any]:
    return {"metric": {label: node, **labels}, "value": [time, str(value)]}


class FakePrometheus(FakeServer):
    """Answers every query with one result, whatever it asks."""

    def __init__(self, result: Any = (), result_type: str = "vector", *, tls: bool = False) -> None:
        super().__init__(tls=tls)
        self.result = result
        self.result_type = result_type
        self.warnings: list[str] = []

    @property
    def queries(self) -> list[str]:
        return [each.query["query"] for each in self.requests]

    def answer(self, request: Request) -> Reply:
        if request.path != "/api/v1/query":
            return Reply(404, "404 page not found")
        data = {"resultType": self.result_type, "result": list(self.result)}
        return Reply(200, {"status": "success", "data": data, "warnings": self.warnings})


class FakeLoadWatcher(FakeServer):
    """Answers as load-watcher does, with percents of capacity by host and type."""

    def __init__(
        self, percents: Mapping[str, Mapping[str, float]], ended: datetime, operators: Iterable[str] = ("AVG",)
    ) -> None:
        super().__init__()
        self.percents = percents
        self.ended = ended
        self.operators = tuple(operators)

    def answer(self, request: Request) -> Reply:
        if request.path != "/watcher":
            return Reply(404, "404 page not found")
        end = int(self.ended.timestamp())
        hosts = {host: self._host(each) for host, each in self.percents.items()}
        return Reply(
            200,
            {
                "timestamp": end + 5,
                "window": {"duration": "15m", "start": end - 900, "end": end},
                "source": "Prometheus",
                "data": {"NodeMetricsMap": hosts},
            },
        )

    def _host(self, percents: Mapping[str, float]) -> dict[str, Any]:
        metrics = [
            {"name": "", "type": kind, "operator": operator, "rollup": "15m", "value": value}
            for kind, value in percents.items()
            for operator in self.operators
        ]
        return {"metrics": metrics, "tags": {}, "metadata": {"dataCenter": ""}}
