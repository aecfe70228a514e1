"""Measures dry runs of large clusters, each as a process of its own, and writes docs/performance.md.

    .venv/bin/python tests/bench/performance.py --row 1,000 --no-write

A row is a cluster and a policy.  What is told: wall and processor seconds, the highest resident memory, and how many
seconds were spent in strategies (by the report of the run) and around them: start, reading, protections, report.
`--row TEXT` measures the rows alone whose name contains the text.  `--compare CMD` runs another program beside
rebalancer; `{policy}` and `{snapshot}` in it are replaced by the two files.
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
POLICY = Path(__file__).with_name("policy.yaml")
#: Writes a cluster, in a process of its own: a child's peak memory counts what its parent held when it began.
MAKE = """
import msgspec, sys
from tests.bench.large_cluster import cluster
sys.stdout.buffer.write(msgspec.json.encode(cluster(*map(int, sys.argv[1:]))))
"""
PAGE = ROOT / "docs" / "performance.md"
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


@dataclass(frozen=True)
class Row:
    """A cluster and a policy, and the most that a run should take ("-": nothing is set)."""

    name: str
    nodes: int
    pods: int
    policy: str
    target: str = "-"


@dataclass(frozen=True)
class Measured:
    """What one process took; memory in MB (10^6 bytes).  `strategies` is None for a program that does not tell."""

    wall: float
    cpu: float
    megabytes: float
    strategies: float | None
    evicted: int | None


def rows() -> Iterator[Row]:
    """Yield all rows, small ones first."""
    fit = POLICY.read_text()
    off = fit.replace("nodeFit: true", "nodeFit: false")
    yield Row("ten strategies, 1,000 nodes, 30,000 pods, nodeFit off", 1000, 30_000, off, "2.5 s, 200 MB")
    yield Row("ten strategies, 1,000 nodes, 30,000 pods, nodeFit on", 1000, 30_000, fit, "3 s, 200 MB")
    yield Row("ten strategies, 5,000 nodes, 150,000 pods, nodeFit off", 5000, 150_000, off, "12 s, 700 MB")
    yield Row("ten strategies, 5,000 nodes, 150,000 pods, nodeFit on", 5000, 150_000, fit, "15 s, 700 MB")


def relief_rows() -> Iterator[Row]:
    """Yield relief by requests; half of the nodes are three times as full as the others."""
    for nodes in (200, 1000):
        yield Row(f"relief by requests, {nodes:,} nodes, {nodes * 30:,} pods", nodes, nodes * 30, RELIEF)


def measure(command: Sequence[str], output: Path, longest: float) -> Measured:
    """Run a command once; a run that fails or takes longer than allowed ends the measurement."""
    start = time.perf_counter()
    with output.open("w") as stream:
        process = subprocess.Popen(["timeout", str(longest), *command], stdout=stream)
        _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{shlex.join(command)} ended with {process.returncode} after {wall:.0f} s")
    return Measured(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6, *_told(output))


def _told(output: Path) -> tuple[float | None, int | None]:
    """Return the seconds of all strategies and their evictions, of a report in JSON."""
    try:
        strategies = json.loads(output.read_text())["strategies"]
    except (ValueError, KeyError):
        return None, None
    return sum(each["seconds"] for each in strategies), sum(each["evicted"] for each in strategies)


def measured(row: Row, compare: str | None, longest: float) -> Iterator[tuple[str, Measured]]:
    """Yield a row of rebalancer and, where asked for, of the other program."""
    with tempfile.TemporaryDirectory() as folder:
        policy, snapshot, output = (Path(folder, name) for name in ("policy.yaml", "cluster.json", "output"))
        policy.write_text(row.policy)
        with snapshot.open("w") as stream:
            make = [sys.executable, "-c", MAKE, str(row.nodes), str(row.pods)]
            subprocess.run(make, check=True, stdout=stream, cwd=ROOT, timeout=longest)
        command = [sys.executable, "-m", "rebalancer", "run", "--policy", str(policy), "--snapshot", str(snapshot)]
        yield row.name, measure([*command, "--output", "json"], output, longest)
        if compare:
            words = [word.format(policy=policy, snapshot=snapshot) for word in shlex.split(compare)]
            yield f"{row.name}: {words[0]}", measure(words, output, longest)


def line(name: str, row: Row, found: Measured) -> str:
    """Return a row of the table."""
    inside = outside = "-"
    if found.strategies is not None:
        inside, outside = f"{found.strategies:.1f}", f"{found.wall - found.strategies:.1f}"
    return (
        f"| {name} | {found.wall:.1f} | {found.cpu:.1f} | {found.megabytes:.0f} | {inside} | {outside} "
        f"| {'-' if found.evicted is None else found.evicted} | {row.target} |"
    )


def page(lines: Sequence[str]) -> str:
    """Return docs/performance.md."""
    about = (
        "Dry runs of a snapshot file, each once in a process of its own. `make bench` writes this page; "
        "[performance.py](../tests/bench/performance.py) has the clusters and policies."
    )
    machine = (
        f"Machine: {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, load "
        f"{os.getloadavg()[0]:.1f} at the end: other work on the machine lengthens the wall time."
    )
    head = "| run | wall s | processor s | peak MB | strategies s | reading, report s | evictions | target |"
    table = "\n".join([head, "|---|---|---|---|---|---|---|---|", *lines])
    return f"# Performance\n\n{about}\n\n{machine}\n\n{table}\n"


def main() -> int:
    """Print the rows as they are measured, and write the page unless told otherwise."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--row", default="", metavar="TEXT", help="measure rows alone whose name contains the text")
    parser.add_argument("--compare", metavar="CMD", help="a program to run beside; {policy}, {snapshot}: the files")
    parser.add_argument("--longest", type=float, default=600.0, metavar="SECONDS", help="end a run after so long")
    parser.add_argument("--no-write", action="store_true", help="leave docs/performance.md as it is")
    options = parser.parse_args()
    lines = []
    for row in [each for each in (*rows(), *relief_rows()) if options.row in each.name]:
        for name, found in measured(row, options.compare, options.longest):
            lines.append(line(name, row, found))
            sys.stdout.write(f"{lines[-1]}\n")
            sys.stdout.flush()
    if not options.no_write and not options.row:
        PAGE.write_text(page(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
