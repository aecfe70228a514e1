"""What a kubelet and a Prometheus ask a process: real HTTPS, with the certificate that is there."""

import http.client
import signal
import ssl
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.e2e.waiting import wait_for
from tests.functional.program import Outcome, Program, finish
from tests.ports import free_port

_SECONDS = 60
_TRIES = 5


@dataclass(frozen=True)
class Answer:
    status: int
    body: str
    headers: Mapping[str, str] = field(default_factory=dict)


def ask(port: int, path: str, method: str = "GET", *, secure: bool = True, **headers: str) -> Answer:
    """Ask, again where the server has given up a client that the machine kept waiting."""
    for _ in range(_TRIES - 1):
        try:
            return ask_once(port, path, method, secure=secure, **headers)
        except (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError):
            continue
    return ask_once(port, path, method, secure=secure, **headers)


def ask_once(port: int, path: str, method: str = "GET", *, secure: bool = True, **headers: str) -> Answer:
    context = ssl._create_unverified_context()  # as the kubelet: probes do not look at certificates
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    if secure:
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=_SECONDS, context=context)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return Answer(answer.status, answer.read().decode(), dict(answer.getheaders()))
    finally:
        connection.close()


def wait_until_served(port: int, process: "subprocess.Popen[str]", ask: Callable[..., Answer] = ask) -> None:
    def answers() -> bool:
        assert process.poll() is None, process.communicate()
        try:
            return ask(port, "/healthz").status > 0
        except OSError:
            return False

    wait_for(answers, "an answer to /healthz")


class Served:
    """A loop as a process, with a port to ask."""

    def __init__(self, program: Program, *arguments: object, ask: Callable[..., Answer] = ask) -> None:
        self.ask = ask
        self.port = free_port()
        self.process = program.start(*arguments, "--secure-port", self.port, "--bind-address", "127.0.0.1")
        wait_until_served(self.port, self.process, ask)

    def metric(self, series: str) -> float:
        """The value of a series; 0 where it is not there yet."""
        return samples(self.ask(self.port, "/metrics").body).get(series, 0.0)

    def wait_metric(self, series: str, least: float) -> None:
        wait_for(lambda: self.metric(series) >= least, f"{series} of {least}")

    def end(self, number: signal.Signals = signal.SIGTERM) -> Outcome:
        """Send a signal, and wait for the end."""
        self.process.send_signal(number)
        return finish(self.process)


def samples(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {series: float(value) for series, _, value in (line.rpartition(" ") for line in lines)}
