"""What a kubelet and a Prometheus ask a process: real HTTPS, with the certificate that is there."""

import http.client
import ssl
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.e2e.waiting import wait_for

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
    """Ask."""
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
    """Wait until something listens."""

    def answers() -> bool:
        assert process.poll() is None, process.communicate()
        try:
            return ask(port, "/healthz").status > 0
        except OSError:
            return False

    wait_for(answers, "an answer to /healthz")


def samples(text: str) -> dict[str, float]:
    """Values by series, as the text format has them."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {series: float(value) for series, _, value in (line.rpartition(" ") for line in lines)}
