"""The program as its user meets it: arguments in; exit code, standard output and standard error out."""

import json
import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from rebalancer.cli.main import main
from rebalancer.kube.tries import RetryPolicy
from rebalancer.run.interruption import Interruption
from rebalancer.run.options import ClientOptions, LeaseOptions, Options
from rebalancer.run.options import Outcome as RunOutcome
from rebalancer.run.start import run as run_cycle
from tests import forks
from tests.fake_api_server import FakeApiServer

#: How long a process of the tests may take; only a broken program comes near it.
TIMEOUT_SECONDS = 300.0

#: What decides in the environment on where the cluster is.
_CLUSTER_VARIABLES = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")


@dataclass(frozen=True)
class Outcome:
    """How the program ended."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def report(self) -> dict[str, Any]:
        """Standard output, which must be one JSON document and nothing else."""
        return json.loads(self.stdout)

    def evicted(self) -> list[str]:
        return [f"{each['namespace']}/{each['name']}" for each in self.report["evictions"]]

    def refused(self) -> dict[str, str]:
        """Causes of refusals by name of the pod."""
        return {each["name"]: each["by"] for each in self.report["refusals"]}

    def failed(self) -> dict[str, str]:
        """Errors by name of the pod."""
        return {each["name"]: each["error"] for each in self.report["failures"]}


@dataclass(frozen=True)
class Program:
    """Runs `rebalancer` with a home directory of its own."""

    folder: Path  # where policies and kubeconfigs are written
    environment: Mapping[str, str] = field(default_factory=dict)  # variables on top of the surrounding ones
    started: "list[subprocess.Popen[str]]" = field(default_factory=list)  # its processes

    def __call__(self, *arguments: object) -> Outcome:
        variables = dict.fromkeys(_CLUSTER_VARIABLES) | {"HOME": str(self.folder)} | dict(self.environment)
        result = CliRunner(env=variables).invoke(main, [str(each) for each in arguments], catch_exceptions=False)
        return Outcome(result.exit_code, result.stdout, result.stderr)

    def at(self, server: FakeApiServer, *words: object) -> Outcome:
        """Run a command on the cluster of a server."""
        return self(*words, "--kubeconfig", server.kubeconfig(self.folder))

    def run(self, server: FakeApiServer, policy: Mapping[str, Any], *options: object) -> Outcome:
        """Run one cycle against a server, with a JSON report."""
        return self(*self.arguments(server, policy), *options)

    def arguments(self, server: FakeApiServer, policy: Mapping[str, Any], output: str = "json") -> Sequence[object]:
        """Return the arguments of `run` for a server and a policy; taking turns has tests of its own."""
        kubeconfig = server.kubeconfig(self.folder)
        named = ("--policy", self.policy(policy), "--kubeconfig", kubeconfig)
        return ("run", "--yes", "--no-lease", *named, *(("--output", output) if output else ()))

    def play(self, server: FakeApiServer, policy: Mapping[str, Any], time: Any = None, **more: Any) -> RunOutcome:
        """Run one cycle by a clock of the test's own, with options of `rebalancer.run` by name."""
        given = {key: more.pop(key) for key in ("person", "deliver") if key in more}
        client = ClientOptions(str(server.kubeconfig(self.folder)))
        options = Options(str(self.policy(policy)), client=client, lease=LeaseOptions(no_lease=True), **more)
        retry_policy = time and RetryPolicy(clock=time.clock, sleep=time.sleep)
        with Interruption() as interruption:
            return run_cycle(options, interruption=interruption, retry_policy=retry_policy, **{"person": None, **given})

    def cluster(self, *objects: Mapping[str, Any], name: str = "cluster.json", **more: Any) -> Path:
        path = self.folder / name
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects, **more}))
        return path

    def offline(self, document: Mapping[str, Any], file: Path, *options: object) -> Outcome:
        """Run on a cluster file, with a JSON report."""
        return self("run", "--policy", self.policy(document), "--snapshot", file, "--output", "json", *options)

    def policy(self, document: Mapping[str, Any]) -> Path:
        path = self.folder / "policy.yaml"
        path.write_text(json.dumps(document))  # JSON is YAML
        return path

    def start(self, *arguments: object, **settings: Any) -> "subprocess.Popen[str]":
        """Start the command as a process of its own; the caller sees it end (`finish`)."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        variables = {name: value for name, value in os.environ.items() if name not in _CLUSTER_VARIABLES}
        environment = variables | {"HOME": str(self.folder)} | dict(self.environment)
        process = forks.start(arguments, env=environment, text=True, **{**pipes, **settings})
        self.started.append(process)
        return process

    def close(self) -> None:
        for process in self.started:
            with process:
                process.kill()


def finish(process: "subprocess.Popen[str]", *, within: float = TIMEOUT_SECONDS) -> Outcome:
    """Wait for the end of a process, for so many seconds at most."""
    with process:
        try:
            stdout, stderr = process.communicate(timeout=within)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return Outcome(process.returncode, stdout, stderr)


def wait_for(event: threading.Event, process: "subprocess.Popen[str]") -> None:
    until = time.monotonic() + TIMEOUT_SECONDS
    while not event.wait(0.05):
        assert process.poll() is None, finish(process)
        assert time.monotonic() < until


def arrival(server: FakeApiServer, method: str, pattern: str) -> threading.Event:
    """Return an event that is set when the first such request has arrived, before it is served."""
    arrived = threading.Event()
    server.on(method, pattern, lambda _: arrived.set(), times=1)
    return arrived
