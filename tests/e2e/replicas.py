"""Replicas of a loop, each a process with a ServiceAccount of its own, so that the audit log tells them apart."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from tests.e2e.api import Api, ApiError, Object
from tests.e2e.audit import Request

#: Lease duration, renew deadline and retry period: as short as a busy machine allows.
TIMING = ("3s", "2s", "400ms")
LEASE = "e2e"


@dataclass
class Replica:
    """One process; started again it is the same account and another identity."""

    user: str
    kubeconfig: Path
    policy: Path
    namespace: str
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def pid(self) -> int:
        return self.processes[-1].pid

    @property
    def log(self) -> Path:
        return self.policy.with_name(f"{self.kubeconfig.stem}.log")

    def start(self, *options: str) -> None:
        """Start, with the report as JSON lines, which nobody reads here."""
        command = [sys.executable, "-m", "rebalancer", "run", "--policy", str(self.policy), "--yes", "-v", "1"]
        command += ["--kubeconfig", str(self.kubeconfig), "--descheduling-interval", "500ms", "--leader-elect"]
        command += ["--leader-elect-resource-namespace", self.namespace, "--leader-elect-resource-name", LEASE]
        for name, seconds in zip(("lease-duration", "renew-deadline", "retry-period"), TIMING, strict=True):
            command += [f"--leader-elect-{name}", seconds]
        with self.log.open("ab") as log:
            self.processes.append(
                subprocess.Popen([*command, *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            )

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def end(self, number: signal.Signals) -> int:
        """End it by a signal, and return its exit code."""
        self.send(number)
        return self.processes[-1].wait(300)

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()


@contextmanager
def replicas(made: Iterable[Replica]) -> Iterator[list[Replica]]:
    """Start replicas, and see to their end."""
    all_of_them = list(made)
    try:
        for each in all_of_them:
            each.start()
        yield all_of_them
    finally:
        for each in all_of_them:
            each.close()


def holder(api: Api, namespace: str, name: str = LEASE) -> int:
    """The process that holds the Lease, by what it calls itself; 0 for none."""
    try:
        lease: Object = api.read("Lease", name, namespace)
    except ApiError:
        return 0
    identity = str(lease["spec"].get("holderIdentity") or "")
    return int(identity.split("_")[1]) if identity else 0


def write_policy(folder: Path, policy: Object) -> Path:
    path = folder / "policy.json"
    path.write_text(json.dumps(policy))
    return path


@dataclass(frozen=True)
class Judgement:
    """What the audit log says.

    Attributes:
        handovers: how often the Lease was written by another than before.
        evicted: pods whose eviction was granted, in order.
        strays: for each time the Lease went over, the evictions that the one before still asked for.
    """

    handovers: int
    evicted: list[str]
    strays: list[int]


def judged(requests: Iterable[Request]) -> Judgement:
    """Hold evictions against who had last written the Lease when they were received."""
    writes = [each for each in requests if each.resource == "leases" and not each.reads_only and each.status < 300]
    evictions = [each for each in requests if each.subresource == "eviction"]
    writes.sort(key=lambda each: each.answered)
    owners = [write.user for write in writes]
    strays = [0] * (len(writes) + 1)
    for eviction in evictions:
        before = sum(write.answered <= eviction.received for write in writes)
        if not before or owners[before - 1] != eviction.user:
            strays[_last_by(owners[:before], eviction.user)] += 1
    return Judgement(
        handovers=sum(one != two for one, two in pairwise(owners)),
        evicted=[each.name for each in evictions if each.status < 300],
        strays=[count for count in strays if count],
    )


def _last_by(owners: list[str], user: str) -> int:
    """The last write of a user's before some point, counted from 1; 0 for none."""
    return max((number for number, owner in enumerate(owners, 1) if owner == user), default=0)
