"""A proxy between the program and the API server, which holds a request until the test lets it go, or loses answers."""

import json
import threading
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import urllib3
import yaml

from tests.e2e.harness import ControlPlane
from tests.fake_http import HttpServer, Reply, Request

TIMEOUT = 300
#: Between one hop and the next, or made anew for the next one; all other headers go through.
HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "transfer-encoding", "content-length", "content-type", "host", "accept-encoding")
)


@dataclass
class Hold:
    """One request to hold: the first of a method whose path ends so, or one after that."""

    method: str
    path_end: str
    before: int = 0  # how many such requests go through before it
    path: str = ""  # the path of the request held
    _arrived: threading.Event = field(default_factory=threading.Event)
    _released: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> str:
        """Wait until such a request is held, and return its path."""
        if not self._arrived.wait(TIMEOUT):
            raise AssertionError(f"no {self.method} ...{self.path_end} within {TIMEOUT} s")
        return self.path

    def release(self) -> None:
        self._released.set()

    def pass_through(self, method: str, path: str) -> None:
        if method != self.method or not path.endswith(self.path_end) or self._arrived.is_set():
            return
        self.before -= 1
        if self.before < 0:
            self.path = path
            self._arrived.set()
            self._released.wait(TIMEOUT)

    def loses(self, method: str, path: str) -> bool:
        """Whether the answer does not come back."""
        return False


@dataclass
class Lose(Hold):
    """Requests whose answers are lost: the first such one and what is asked of the same path again.

    The API server does what was asked for, and the program never hears of it.
    """

    def pass_through(self, method: str, path: str) -> None:
        """Let everything through."""

    def loses(self, method: str, path: str) -> bool:
        if method == self.method and path.endswith(self.path_end):
            self.path = self.path or path
        return method == self.method and path == self.path


class Proxy(HttpServer):
    """Forwards every request as it is, on a port of its own, with the API server's certificate."""

    def __init__(self, controlplane: ControlPlane, hold: Hold) -> None:
        self.hold = hold
        self._directory = controlplane.directory
        self._upstream = controlplane.server
        self._pool = urllib3.PoolManager(ca_certs=str(self._directory / "ca.crt"), timeout=TIMEOUT, retries=False)
        identity = self._directory / "server.pem"
        identity.write_text("".join((self._directory / f"server.{each}").read_text() for each in ("crt", "key")))
        super().__init__(self._forward, identity)

    def stop(self) -> None:
        self.hold.release()
        super().stop()

    def kubeconfig(self, direct: Path) -> Path:
        document = yaml.safe_load(direct.read_text())
        document["clusters"][0]["cluster"]["server"] = self.url
        path = self._directory / f"proxy-{urlsplit(self.url).port}-{direct.name}"
        path.write_text(yaml.safe_dump(document))
        return path

    def _forward(self, request: Request) -> Reply:
        """Ask the API server and pass its answer on; without one, hang up."""
        self.hold.pass_through(request.method, request.path)
        headers = {name: value for name, value in request.headers.items() if name not in HOP_BY_HOP}
        body = None if request.body is None else json.dumps(request.body)
        url = f"{self._upstream}{request.path}?{urlencode(request.query)}"
        headers |= {"content-type": request.headers.get("content-type", "application/json")}
        try:
            answer = self._pool.request(request.method, url, body=body, headers=headers)
        except urllib3.exceptions.HTTPError:
            return Reply(0, None, lost=True)
        kept = {name: value for name, value in answer.headers.items() if name.lower() not in HOP_BY_HOP}
        return Reply(answer.status, answer.json(), kept, lost=self.hold.loses(request.method, request.path))
