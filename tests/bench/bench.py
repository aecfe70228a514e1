"""Measures whole commands as their user waits for them, and fails where a median misses its target (`make bench`)."""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rebalancer.engine.strategy import builtin
from tests.bench.large_cluster import cluster

RUNS = 7
PODS, NODES = 3000, 100
POLICY = Path(__file__).with_name("policy.yaml")

#: For one run; only a broken program takes so long.
LONGEST_SECONDS = 120.0


def seconds(arguments: tuple[str, ...]) -> float:
    """Run a command once; standard output is written nowhere."""
    command = [sys.executable, "-m", "rebalancer", *arguments]
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=LONGEST_SECONDS)
    return time.perf_counter() - start


def benchmarks(folder: Path) -> Iterator[tuple[str, tuple[str, ...], float]]:
    """Yield what is measured, the arguments, and the seconds in which that should be done."""
    yield "rebalancer --help", ("--help",), 0.3
    snapshot = folder / "cluster.json"
    snapshot.write_text(json.dumps(cluster(NODES, PODS), indent=4))  # as kubectl does
    arguments = ("run", "--policy", str(POLICY), "--snapshot", str(snapshot), "--output", "json")
    yield f"a dry run of {PODS:,} pods on {NODES} nodes, all strategies", arguments, 1.5


def main() -> int:
    """Print a line for each benchmark; return how many missed their target, at most 1."""
    absent = [strategy.name for strategy in builtin() if f"- {strategy.name}\n" not in POLICY.read_text()]
    if absent:
        sys.stdout.write(f"{POLICY} does not run {', '.join(absent)}\n")
        return 1
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        for name, arguments, target in benchmarks(Path(folder)):
            seconds(arguments)  # compiles modules, fills the disk cache
            runs = [seconds(arguments) for _ in range(RUNS)]
            median = statistics.median(runs)
            verdict = "ok" if median < target else "TOO SLOW"
            sys.stdout.write(
                f"{name}: median {median:.2f} s of {RUNS} runs ({min(runs):.2f} to {max(runs):.2f}), "
                f"target {target} s: {verdict}\n"
            )
            missed = missed or median >= target
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
