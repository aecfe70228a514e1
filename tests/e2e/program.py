"""The program under test: a process of its own with a kubeconfig, its report read back; and policies for it."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from tests.e2e.api import Object
from tests.functional import objects

# Seconds until a run that hangs is killed; none takes nearly that long.
TIMEOUT = 600


@dataclass(frozen=True)
class Outcome:
    exit_code: int
    report: Object
    stderr: str

    def evicted(self) -> list[str]:
        return [each["name"] for each in self.report["evictions"]]

    def evicted_uids(self) -> list[str]:
        return [each["uid"] for each in self.report["evictions"]]

    def spent_uids(self) -> list[str]:
        """UIDs of the pods that were evicted, or may have been."""
        return [each["uid"] for each in (*self.report["evictions"], *self.report["unknown"])]

    def refused(self) -> dict[str, str]:
        """What kept a pod, by the pod's name: the protection, the limit, PDB, ..."""
        return {each["name"]: each["by"] for each in self.report["refusals"]}

    def reasons(self) -> dict[str, str]:
        return {each["name"]: each["reason"] for each in self.report["refusals"]}

    def errors(self) -> dict[str, str]:
        """Errors of strategies, by strategy, and of evictions, by pod."""
        failed = {each["name"]: each["error"] for each in self.report["failures"]}
        return failed | {each["strategy"]: each["error"] for each in self.report["strategies"] if each["error"]}


class Running:
    """A run that goes on beside the test; it begins with the `with` block, and is killed with it if it still runs."""

    def __init__(self, command: list[str], policy: str) -> None:
        self._command = command
        self._policy = policy
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._stdin, self._stdout, self._stderr = (
                stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(3)
            )
            self._stdin.write(self._policy)
            self._stdin.seek(0)
            self._process = subprocess.Popen(self._command, stdin=self._stdin, stdout=self._stdout, stderr=self._stderr)
            stack.callback(self._end)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()

    def runs(self) -> bool:
        return self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def stderr(self) -> str:
        return content(self._stderr)

    def finish(self) -> Outcome:
        exit_code = self._process.wait(timeout=TIMEOUT)
        printed = content(self._stdout)
        return Outcome(exit_code, json.loads(printed) if printed else {}, self.stderr())


def content(file: IO[str]) -> str:
    """All of a file that another process writes; where that one goes on writing is not moved."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode()


class Program:
    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig

    def start(self, policy: Object, *options: str) -> Running:
        command = [sys.executable, "-m", "rebalancer", "run", "--policy", "-", "--output", "json", "--yes"]
        return Running([*command, "--kubeconfig", str(self._kubeconfig), *options], json.dumps(policy))

    def run(self, policy: Object, *options: str) -> Outcome:
        with self.start(policy, *options) as running:
            return running.finish()

    def dry_run(self, policy: Object, *options: str) -> Outcome:
        return self.run(policy, "--dry-run", *options)


def policy(strategies: Mapping[str, Object], evictor: Object | None = None, **top: object) -> Object:
    """A policy of one profile: the arguments of each strategy by its name, in the order to run.

    Nodes and pods are seconds old here, and cycles follow each other: patience has tests of its own.
    """
    trust = {"trust": {"enabled": False}}
    return objects.policy(*strategies.items(), name="e2e", evictor=evictor or {}, **{**trust, **top})


def everything_in(namespace: str, evictor: Object | None = None, **top: object) -> Object:
    """A policy by which every running pod of a namespace should go, the oldest first, whatever its age."""
    strategy = {"states": ["Running"], "namespaces": {"include": [namespace]}}
    return policy({"PodLifeTime": strategy}, evictor, **top)
