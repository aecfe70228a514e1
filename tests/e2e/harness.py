"""A real control plane on loopback, as plain processes: etcd, API server, controllers, scheduler, kwok."""

import itertools
import json
import secrets
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import yaml

from tests.e2e.api import Api, ApiError, Object
from tests.e2e.commands import Commands, Ports, make_keys, write_kubeconfig
from tests.e2e.processes import Processes
from tests.e2e.waiting import DeadlineError, wait_for
from tests.ports import answers, free_ports

APISERVER = "kube-apiserver"


#: Of the audit log.
POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - level: None
    users: [components, "system:apiserver"]
  - level: Metadata
"""


@dataclass(frozen=True)
class Request:
    """One request that the API server has answered; `received` and `answered` are times as it writes them."""

    user: str
    verb: str
    path: str
    resource: str
    subresource: str
    namespace: str
    name: str
    status: int
    received: str
    answered: str

    @property
    def reads_only(self) -> bool:
        """Whether it cannot have changed anything; an access review (create) does not count as reading."""
        return self.verb in {"get", "list", "watch"}


def _request(entry: Object) -> Request:
    about = entry.get("objectRef", {})
    return Request(
        user=entry["user"]["username"],
        verb=entry["verb"],
        path=entry["requestURI"],
        resource=about.get("resource", ""),
        subresource=about.get("subresource", ""),
        namespace=about.get("namespace", ""),
        name=about.get("name", ""),
        status=entry.get("responseStatus", {}).get("code", 0),
        received=entry["requestReceivedTimestamp"],
        answered=entry["stageTimestamp"],
    )


class ControlPlane:
    def __init__(self, binaries: Path, scheduler_options: Sequence[str] = (), stages: Sequence[Path] = ()) -> None:
        # Everything it writes: logs, keys, etcd's data; removed by `stop`.
        self.directory = Path(tempfile.mkdtemp(prefix="rebalancer-e2e-"))
        self.processes = Processes(self.directory)
        ports = Ports(*itertools.islice(free_ports(), len(Ports.__dataclass_fields__)))
        self.server = f"https://127.0.0.1:{ports.apiserver}"  # the API server's URL
        self._ports = ports
        keys = make_keys(self.directory)
        # For the program under test; its requests are of user "program" (group system:masters).
        self.kubeconfig = self.kubeconfig_for("program", keys.tokens["program"])
        self.api = Api(self.kubeconfig_for("admin", keys.tokens["admin"]))  # the tests' own client, of user "admin"
        components = self.kubeconfig_for("components", keys.tokens["components"])
        self._commands = Commands(binaries, keys, ports, components, scheduler_options, stages)

    def __enter__(self) -> Self:
        """Start; what was started is stopped when that fails."""
        with ExitStack() as stack:
            stack.callback(self.stop)
            self.start()
            stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start all but metrics-server, and wait until they work."""
        (self.directory / "audit-policy.yaml").write_text(POLICY)
        self.processes.start("etcd", self._commands.etcd())
        self._wait(lambda: answers(f"http://127.0.0.1:{self._ports.etcd}/health"), "etcd healthy")
        self.start_apiserver()
        self.start_components()  # these give up when there is no API server yet, so they come after it
        self._wait(lambda: self.api.list("ServiceAccount", "default"), "the controllers at work")

    def start_components(self) -> None:
        """Start the controllers, the scheduler and kwok; anew where they run.

        After an outage of the API server they look for it at ever longer intervals, up to a minute.
        """
        commands = {
            "kube-controller-manager": self._commands.controllers(),
            "kube-scheduler": self._commands.scheduler(),
            "kwok": self._commands.kwok(),
        }
        self.processes.kill(*commands)
        for name, command in commands.items():
            self.processes.start(name, command)
        self._wait(lambda: answers(f"http://127.0.0.1:{self._ports.kwok}/healthz"), "kwok healthy")

    def stop(self) -> None:
        """Kill all, API server first (it would wait for minutes for an etcd that is gone); harmless twice."""
        self.processes.close(first=APISERVER)

    def start_apiserver(self) -> None:
        self.processes.start(APISERVER, self._commands.apiserver())
        self._wait(self.api.ready, "the API server ready")

    def stop_apiserver(self) -> None:
        """Kill the API server; the others keep trying to reach it."""
        self.processes.kill(APISERVER)

    def restart_apiserver(self) -> None:
        self.stop_apiserver()
        self.start_apiserver()

    def start_metrics_server(self) -> None:
        """Start metrics-server, unless it runs, and wait until the metrics API is there.

        Figures of a pod come up to 25 s after it started. A node whose CPU use is zero has none.
        """
        if self.processes.runs("metrics-server"):
            return
        self.processes.start("metrics-server", self._commands.metrics_server())
        for manifest in yaml.safe_load_all(METRICS_API.replace("PORT", str(self._ports.metrics_server))):
            self.api.create(manifest, "kube-system")
        self._wait(lambda: self.api.ready("/apis/metrics.k8s.io/v1beta1"), "the metrics API")

    def kubeconfig_for(self, name: str, token: str) -> Path:
        path = self.directory / f"{name}.kubeconfig"
        return write_kubeconfig(path, self.server, self.directory / "ca.crt", token)

    def scheduler_configuration(self, configuration: Object, name: str = "scheduler") -> Path:
        """Write a configuration for a scheduler, which takes its kubeconfig from there alone, and return its path."""
        connection = {"kubeconfig": str(self.directory / "components.kubeconfig"), "qps": 500, "burst": 1000}
        settings = {"clientConnection": connection, "leaderElection": {"leaderElect": False}}
        path = self.directory / f"{name}.json"
        path.write_text(json.dumps({**configuration, **settings}))
        return path

    def kubelet_metrics_url(self, node: str) -> str:
        """Where kwok serves a node's resource metrics over plain http, for a Prometheus to scrape."""
        return f"http://127.0.0.1:{self._ports.kwok}/metrics/nodes/{node}/metrics/resource"

    def audit_offset(self) -> int:
        return (self.directory / "audit.jsonl").stat().st_size

    def requests_since(self, offset: int, user: str | None = "program") -> list[Request]:
        """Return all requests that the API server has answered to a user (None: to anybody) since `audit_offset`.

        In order.  A request of our own marks the end, so none answered before this call is missing.
        """
        log = self.directory / "audit.jsonl"
        mark = secrets.token_hex(8)
        self.api.request("GET", "/version", query={"mark": mark})
        wait_for(lambda: mark.encode() in log.read_bytes(), "the audit log up to date")
        lines = log.read_bytes()[offset:].split(b"\n")[:-1]  # one may still be on its way
        return [each for each in map(_request, map(json.loads, lines)) if user in (None, each.user)]

    def keep_logs(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for log in [*self.directory.glob("*.log"), *self.directory.glob("audit*.jsonl")]:
            shutil.copy(log, folder)

    def _wait(self, condition: Callable[[], object], what: str) -> None:
        def reached() -> object:
            self.processes.check()
            try:
                return condition()
            except ApiError as error:
                if error.status not in {403, 404, 500, 503}:  # what a server says that is still starting
                    raise
                return None

        try:
            wait_for(reached, what)
        except DeadlineError as error:
            error.add_note(self.processes.tails())
            raise


#: Through which the API server reaches a metrics-server on loopback: by name, as Endpoints hold no loopback address.
METRICS_API = """
apiVersion: v1
kind: Service
metadata: {name: metrics-server, namespace: kube-system}
spec: {type: ExternalName, externalName: localhost, ports: [{port: PORT}]}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.k8s.io}
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: metrics-server, namespace: kube-system, port: PORT}
"""
