"""The descheduler's manifests: their command lines and their probe, played as the kubelet would, in a long cycle."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fake_api_server import FakeApiServer
from tests.functional.objects import OLD, old_pods, policy, two_nodes_with
from tests.functional.probing import ask

#: Of each answer while the cycle is to be long: below the client's time-out, four of them make two minutes.
SLOW_SECONDS = 28.0
PORT = 10258

#: Args as the manifests have them; only where the policy is mounted differs.
MANIFESTS = {
    "job": ["--policy-config-file", "POLICY", "--v", "3"],
    "deployment": ["--policy-config-file", "POLICY", "--descheduling-interval", "5m", "--v", "3"],
}


@dataclass(frozen=True)
class LivenessProbe:
    """What base and overlays of the manifests say."""

    initial_delay: float = 3.0
    period: float = 10.0
    failures: int = 3
    path: str = "/healthz"

    def play(self, process: "subprocess.Popen[bytes]", enough: threading.Event) -> list[bool]:
        """Probe until the process ends or enough is seen; kill it when a kubelet would."""
        seen: list[bool] = []
        due = time.monotonic() + self.initial_delay
        while process.poll() is None and not enough.is_set():
            enough.wait(max(0.0, due - time.monotonic()))
            due += self.period
            seen.append(self._answers())
            if seen[-self.failures :] == [False] * self.failures:
                process.kill()
        return seen

    def _answers(self) -> bool:
        try:
            return ask(PORT, self.path).status == 200
        except OSError:
            return False


@pytest.fixture
def slow() -> Iterator[tuple[FakeApiServer, threading.Event]]:
    """An API server that takes long over everything, and an Event that is set with the first eviction."""
    asked = threading.Event()
    with FakeApiServer(two_nodes_with(*old_pods("a", "b"))) as server:
        never = threading.Event()
        server.on("POST", "*/eviction", lambda _: never.wait(SLOW_SECONDS) and None, times=1)
        for pattern in ("/api/v1/nodes", "/api/v1/pods", "*/poddisruptionbudgets"):
            server.on("GET", pattern, lambda _: never.wait(SLOW_SECONDS) and None, times=1)
        server.on("POST", "*/events", lambda _: asked.set())
        yield server, asked


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_never_killed_for_health_in_a_cycle_of_two_minutes(
    slow: tuple[FakeApiServer, threading.Event], tmp_path: Path, manifest: str
) -> None:
    """Args as they are, inside a pod as far as the program can tell: it serves from the start and goes on serving."""
    server, evicted = slow
    (tmp_path / "policy.yaml").write_text(json.dumps(policy(OLD, maxNoOfPodsToEvictTotal=1)))
    given = [each.replace("POLICY", str(tmp_path / "policy.yaml")) for each in MANIFESTS[manifest]]
    environment = {**os.environ, "KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBECONFIG": str(server.kubeconfig(tmp_path))}
    start = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "rebalancer", *given, "--bind-address", "127.0.0.1"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        seen = LivenessProbe().play(process, evicted)
        took = time.monotonic() - start
        if manifest == "deployment":  # the Job ends by itself
            process.terminate()
        exit_code = process.wait(120)
    finally:
        process.kill()

    assert server.evicted == ["default/a"]
    assert took > 4 * SLOW_SECONDS
    assert exit_code == 0
    assert sum(seen) >= len(seen) - 2  # a busy machine may need some seconds to start
