"""Measures the memory of a loop over 500 cycles, and fails where it grows (`make bench`)."""

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.large_cluster import cluster
from tests.e2e.waiting import wait_for
from tests.fake_api_server import FakeApiServer
from tests.functional.probing import ask, samples, wait_until_served
from tests.ports import free_port

CYCLES = 500
#: Cycles after which caches are full and the allocator has what it needs.
WARM = 100
#: Growth from there to the end, of which more counts as a leak.
MOST_GROWTH = 0.05
PODS, NODES = 300, 20
LONGEST_SECONDS = 1800.0
POLICY = Path(__file__).with_name("policy.yaml")


def figures(port: int) -> tuple[float, float]:
    found = samples(ask(port, "/metrics").body)
    cycles = sum(value for series, value in found.items() if series.startswith("rebalancer_cycles_total{"))
    return cycles, found["process_resident_memory_bytes"]


def memory_after(port: int, cycles: int) -> float:
    wait_for(lambda: figures(port)[0] >= cycles, f"{cycles} cycles", LONGEST_SECONDS, interval=1.0)
    return figures(port)[1]


def measure(folder: Path) -> tuple[float, float]:
    port = free_port()
    with FakeApiServer(cluster(NODES, PODS)["items"]) as server:
        config = server.kubeconfig(folder)
        command = [sys.executable, "-m", "rebalancer", "run", "--policy", str(POLICY), "--kubeconfig", str(config)]
        command += ["--dry-run", "--descheduling-interval", "10ms", "--log-format", "json"]
        command += ["--secure-port", str(port), "--bind-address", "127.0.0.1"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
        try:
            wait_until_served(port, process)
            return memory_after(port, WARM), memory_after(port, CYCLES)
        finally:
            process.kill()
            process.wait()
            server.requests.clear()


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        warm, end = measure(Path(folder))
    growth = end / warm - 1
    verdict = "ok" if growth <= MOST_GROWTH else "GROWS"
    sys.stdout.write(
        f"memory over {CYCLES} cycles of {PODS} pods: {warm / 1e6:.0f} MB after {WARM}, {end / 1e6:.0f} MB in the end "
        f"({growth:+.1%}, target {MOST_GROWTH:+.0%}): {verdict}\n"
    )
    return int(growth > MOST_GROWTH)


if __name__ == "__main__":
    sys.exit(main())
