"""The program under test: a process of its own with a kubeconfig, its report read back; and policies for it."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.e2e.api import Object

# Seconds until a run that hangs is killed; none takes nearly that long.
TIMEOUT = 180

BALANCE = frozenset(
    {
        "HighNodeUtilization",
        "LowNodeUtilization",
        "RemoveDuplicates",
        "RemovePodsViolatingTopologySpreadConstraint",
    }
)


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    Attributes:
        exit_code: Of the process.
        report: What it printed, as JSON; empty if it printed nothing.
        stderr: What it said beside that.
    """

    exit_code: int
    report: Object
    stderr: str

    def evicted(self) -> list[str]:
        """Names of the pods evicted, in order."""
        return [each["name"] for each in self.report["evictions"]]

    def evicted_uids(self) -> list[str]:
        """UIDs of the pods evicted, in order."""
        return [each["uid"] for each in self.report["evictions"]]

    def refused(self) -> dict[str, str]:
        """What kept a pod, by the pod's name: the protection, the limit, PDB, ..."""
        return {each["name"]: each["by"] for each in self.report["refusals"]}

    def reasons(self) -> dict[str, str]:
        """Why, in words, a pod stays, by the pod's name."""
        return {each["name"]: each["reason"] for each in self.report["refusals"]}

    def errors(self) -> dict[str, str]:
        """Errors of strategies, by strategy, and of evictions, by pod."""
        failed = {each["name"]: each["error"] for each in self.report["failures"]}
        return failed | {each["strategy"]: each["error"] for each in self.report["strategies"] if each["error"]}


class Running:
    """A run that goes on beside the test; as a context manager it is killed at the end if it still runs."""

    def __init__(self, command: list[str], policy: str) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._policy = policy

    def __enter__(self) -> Self:
        """Hand the policy over, so that the run begins."""
        assert self._process.stdin is not None
        self._process.stdin.write(self._policy)
        self._process.stdin.close()
        self._process.stdin = None  # `communicate` would close it again
        return self

    def __exit__(self, *_: object) -> None:
        """Kill it if it has not ended."""
        with self._process as process:
            if process.poll() is None:
                process.kill()

    def runs(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def finish(self) -> Outcome:
        """Wait for its end."""
        stdout, stderr = self._process.communicate(timeout=TIMEOUT)
        return Outcome(self._process.returncode, json.loads(stdout) if stdout else {}, stderr)


class Program:
    """The program with one user's credentials."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig

    def start(self, policy: Object, *options: str) -> Running:
        """Begin a live run, unless the options say otherwise; it begins when the context is entered."""
        command = [sys.executable, "-m", "rebalancer", "run", "--policy", "-", "--output", "json"]
        return Running([*command, "--kubeconfig", str(self._kubeconfig), *options], json.dumps(policy))

    def run(self, policy: Object, *options: str) -> Outcome:
        """Run to the end, live unless the options say otherwise."""
        with self.start(policy, *options) as running:
            return running.finish()

    def dry_run(self, policy: Object, *options: str) -> Outcome:
        """Run to the end, as a dry run."""
        return self.run(policy, "--dry-run", *options)


def policy(strategies: Mapping[str, Object], evictor: Object | None = None, **top: object) -> Object:
    """A policy of one profile.

    Args:
        strategies: The arguments of each strategy by its name, in the order to run.
        evictor: Arguments of DefaultEvictor.
        top: Keys beside the profiles, such as limits.
    """
    configured = {"DefaultEvictor": evictor or {}, **strategies}
    enabled: dict[str, Object] = {}
    for name in strategies:
        point = "balance" if name in BALANCE else "deschedule"
        enabled.setdefault(point, {"enabled": []})["enabled"].append(name)
    profile = {
        "name": "e2e",
        "pluginConfig": [{"name": name, "args": args} for name, args in configured.items()],
        "plugins": enabled,
    }
    return {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", **top, "profiles": [profile]}


def everything_in(namespace: str, evictor: Object | None = None, **top: object) -> Object:
    """A policy by which every running pod of a namespace should go, the oldest first, whatever its age."""
    strategy = {"states": ["Running"], "namespaces": {"include": [namespace]}}
    return policy({"PodLifeTime": strategy}, evictor, **top)
