"""Measures runs on large clusters, each as a process of its own, and writes docs/measurements/performance.md.

    .venv/bin/python -m tests.bench.performance --row 1,000 --no-write

A row is a cluster, a policy and a way to run.  What is told: wall and processor seconds, the highest resident memory,
processor seconds by stage (`staged.py`), and how all this grows from size to size.  `--row TEXT` measures the rows
alone whose name contains the text.
"""

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from strategies import BUILTIN

ROOT = Path(__file__).parents[2]
POLICY = Path(__file__).with_name("policy.yaml")
STAGED = Path(__file__).with_name("staged.py")
STAGES = ("import", "read", "index", "decide", "report", "write", "other")
#: Writes a cluster, in a process of its own: a child's peak memory counts what its parent held when it began.
MAKE = """
import msgspec, sys
from tests.bench.large_cluster import cluster
nodes, pods, layout = sys.argv[1:]
sys.stdout.buffer.write(msgspec.json.encode(cluster(int(nodes), int(pods), layout)))
"""
PAGE = ROOT / "docs/measurements/performance.md"
#: For one run; only a broken program takes so long.
LONGEST_SECONDS = 600.0
RELIEF = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
metricsProviders: [{source: KubernetesMetrics}]
profiles:
  - name: relief
    pluginConfig:
      - {name: DefaultEvictor, args: {nodeFit: true}}
      - name: LowNodeUtilization
        args:
          useDeviationThresholds: true
          thresholds: {cpu: 10}
          targetThresholds: {cpu: 10}
          metricsUtilization: {source: KubernetesMetrics, selection: relief, whenMissing: requests}
    plugins:
      balance: {enabled: [LowNodeUtilization]}
"""
STEERED = f"{RELIEF}steering: {{}}\n"


@dataclass(frozen=True)
class Row:
    """A cluster, a policy and options of a run, and the most that it should take ("-": nothing is set).

    A live row runs on a server in a process of its own (`large_server.py`).
    """

    series: str
    nodes: int
    policy: str
    layout: str = "uneven"
    target: str = "-"
    live: bool = False
    options: tuple[str, ...] = ()

    @property
    def pods(self) -> int:
        return self.nodes * 30

    @property
    def name(self) -> str:
        return f"{self.series}, {self.nodes:,} nodes, {self.pods:,} pods"


@dataclass(frozen=True)
class Measured:
    """What one process took; memory in MB (10^6 bytes)."""

    wall: float
    cpu: float
    megabytes: float
    evicted: int
    stages: Mapping[str, float]


def rows() -> Iterator[Row]:
    """Yield all rows; those of a series one after the other, small ones first."""
    fit = POLICY.read_text()
    assert all(f"- {strategy.name}\n" in fit for strategy in BUILTIN)
    yield Row("ten strategies, nodeFit on", 100, fit, target="1.5 s")
    off = fit.replace("nodeFit: true", "nodeFit: false")
    policies = (("off", off, "2.5 s, 200 MB", "12 s, 700 MB"), ("on", fit, "3 s, 200 MB", "15 s, 700 MB"))
    for name, policy, *targets in policies:
        for nodes, target in zip((1000, 5000), targets, strict=True):
            yield Row(f"ten strategies, nodeFit {name}", nodes, policy, target=target)
    for name, policy, alone, at_once in (("off", off, "4 s", "2.5 s"), ("on", fit, "4 s", "3 s")):
        limited = f"{policy}maxNoOfPodsToEvictTotal: 500\n"
        for number, target in (("1", alone), ("8", at_once)):
            series = f"live, 500 evictions, {number} in flight, nodeFit {name}"
            yield Row(series, 1000, limited, target=target, live=True, options=("--max-parallel", number))
    for nodes, target in ((1000, "3 s, 250 MiB"), (2000, "6 s, 400 MiB"), (5000, "15 s, 900 MiB")):
        yield Row("relief, even", nodes, RELIEF, "even", target)
    yield Row("relief, half empty", 90, RELIEF, "half empty", "3 s")
    for nodes, target in ((90, "3 s"), (200, "3 s"), (1000, "12 s")):
        yield Row("steered, half empty", nodes, STEERED, "half empty", target)
    yield Row("steered, even", 5000, STEERED, "even", "25 s")


def took(command: Sequence[str], output: Path) -> tuple[float, float, float, str]:
    """Run a command once; return wall and processor seconds, megabytes at most, and what it said.

    A run that fails or takes too long ends the measurement.
    """
    start = time.perf_counter()
    errors = output.with_suffix(".err")
    with output.open("w") as stream, errors.open("w") as complaints:
        command = ["timeout", str(LONGEST_SECONDS), *command]
        process = subprocess.Popen(command, cwd=ROOT, stdout=stream, stderr=complaints)
        _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    told = errors.read_text()
    if process.returncode:
        raise SystemExit(f"{shlex.join(command)} ended with {process.returncode} after {wall:.0f} s: {told[-2000:]}")
    return wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6, told


def measure(command: Sequence[str], output: Path) -> Measured:
    wall, cpu, megabytes, told = took(command, output)
    return Measured(wall, cpu, megabytes, _evicted(output), json.loads(told.splitlines()[-1]))


def _evicted(output: Path) -> int:
    """Return the evictions of a report in JSON; read by a process of its own, as the cluster is made (see `MAKE`)."""
    count = "import json, sys; print(len(json.load(sys.stdin)['evictions']))"
    with output.open() as stream:
        done = subprocess.run([sys.executable, "-c", count], stdin=stream, capture_output=True, text=True, check=True)
    return int(done.stdout)


def measured(row: Row) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        policy, snapshot, output = (Path(folder, name) for name in ("policy.yaml", "cluster.json", "output"))
        policy.write_text(row.policy)
        command = [sys.executable, str(STAGED), "run", "--policy", str(policy), "--output", "json", *row.options]
        if row.live:
            with _server(row, folder) as config:
                return measure([*command, "--kubeconfig", config, "--yes"], output)
        with snapshot.open("w") as stream:
            make = [sys.executable, "-c", MAKE, str(row.nodes), str(row.pods), row.layout]
            subprocess.run(make, check=True, stdout=stream, cwd=ROOT, timeout=LONGEST_SECONDS)
        return measure([*command, "--snapshot", str(snapshot)], output)


@contextmanager
def _server(row: Row, folder: str) -> Iterator[str]:
    command = [sys.executable, "-m", "tests.bench.large_server", str(row.nodes), str(row.pods), folder]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin
    assert process.stdout
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait()


def line(row: Row, found: Measured) -> str:
    stages = " | ".join(f"{found.stages[each]:.1f}" if each in found.stages else "-" for each in STAGES)
    return (
        f"| {row.name} | {found.wall:.1f} | {found.cpu:.1f} | {found.megabytes:.0f} | {stages} "
        f"| {found.evicted} | {row.target} |"
    )


def growth(found: Sequence[tuple[Row, Measured]]) -> list[str]:
    series: defaultdict[str, list[tuple[Row, Measured]]] = defaultdict(list)
    for row, each in found:
        series[row.series].append((row, each))
    return [
        f"| {name} | {before[0].nodes:,} to {after[0].nodes:,} | {after[0].nodes / before[0].nodes:.1f} "
        f"| {after[1].cpu / before[1].cpu:.1f} | {after[1].megabytes / before[1].megabytes:.1f} |"
        for name, sizes in series.items()
        for before, after in pairwise(sizes)
    ]


def machine() -> str:
    return (
        f"Machine: {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, load "
        f"{os.getloadavg()[0]:.1f} at the end: other work on the machine lengthens the wall time."
    )


def page(lines: Sequence[str], grown: Sequence[str]) -> str:
    about = (
        "Each run once, in a process of its own: dry runs of a snapshot file, and live runs on a server that grants "
        "every eviction after 5 ms, about what a real one takes. `make bench` writes this page; "
        "[performance.py](../../tests/bench/performance.py) has the clusters and policies. "
        "The stages are processor seconds: of the imports, of reading the cluster, of indexing it, of deciding (in a "
        "live run with the requests for evictions), of making the report and of writing it."
    )
    head = f"| run | wall s | processor s | peak MB | {' | '.join(STAGES)} | evictions | target |"
    table = "\n".join([head, "|---" * (head.count("|") - 1) + "|", *lines])
    head = "| series | nodes | times the nodes | times the processor seconds | times the memory |"
    grows = "\n".join([head, "|---|---|---|---|---|", *grown])
    return f"# Performance\n\n{about}\n\n{machine()}\n\n{table}\n\n## Growth\n\n{grows}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--row", default="", metavar="TEXT", help="measure rows alone whose name contains the text")
    parser.add_argument("--no-write", action="store_true", help="leave docs/measurements/performance.md as it is")
    options = parser.parse_args()
    found = []
    for row in [each for each in rows() if options.row in each.name]:
        found.append((row, measured(row)))
        sys.stdout.write(f"{line(*found[-1])}\n")
        sys.stdout.flush()
    if not options.no_write and not options.row:
        PAGE.write_text(page([line(*each) for each in found], growth(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
