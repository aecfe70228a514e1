"""Measures `rebalancer recommend` on a long history, and writes docs/measurements/history.md (`make bench`).

10,000 containers (2,500 Deployments of four pods), two weeks, every five minutes: 40 million samples of CPU and of
memory, from a server on the loopback that answers in Prometheus' format, in a process of its own.

    .venv/bin/python -m tests.bench.history --containers 1000 --no-write
"""

import argparse
import json
import subprocess
import sys
import tempfile
import urllib.request
from math import cos, pi
from pathlib import Path

from tests import fake_http
from tests.bench.performance import ROOT, machine, took
from tests.fake_http import HttpServer, Reply, Request

PAGE = ROOT / "docs/measurements/history.md"
RULES = ("peak-mean", "quantile", "target")
DAYS, DAY, STEP, REPLICAS, PATTERNS = 14, 86_400, 300, 4, 97
END = 1_767_225_600
LONGEST_SECONDS, MOST_MEGABYTES = 90.0, 500.0
LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class Past:
    """What containers used: a wave each day, of 97 heights, with the digits of a real server's answers."""

    def __init__(self, containers: int) -> None:
        self.times = range(END - DAYS * DAY, END + 1, STEP)
        self.names = [
            json.dumps({"namespace": f"ns-{each // 100}", "pod": self._pod(each), "container": "app"}).encode()
            for each in range(containers)
        ]
        waves = [1 + cos(2 * pi * (at % DAY / DAY - 0.55)) for at in self.times]
        self.cpu = [self._values(waves, 0.05 + each * 0.003217, 9) for each in range(PATTERNS)]
        self.memory = [self._values(waves, (100 + each) * 2**20, 0) for each in range(PATTERNS)]

    def _pod(self, number: int) -> str:
        suffix = "".join(LETTERS[number // len(LETTERS) ** place % len(LETTERS)] for place in range(5))
        return f"app-{number // REPLICAS}-5d8f7b9c64-{suffix}"

    def _values(self, waves: list[float], height: float, digits: int) -> list[bytes]:
        pairs = zip(self.times, waves, strict=True)
        return [b'[%d,"%s"]' % (at, f"{height * (0.5 + wave):.{digits}f}".encode()) for at, wave in pairs]

    def answer(self, query: str, start: int, end: int) -> bytes:
        """The body of the answer to a range query; what else is asked than CPU and memory has no series."""
        columns = self.cpu if "cpu_usage" in query else self.memory if "working_set" in query else None
        part = slice((start - self.times[0]) // STEP, (end - self.times[0]) // STEP + 1)
        values = [b",".join(each[part]) for each in columns] if columns else []
        series = [
            b'{"metric":%s,"values":[%s]}' % (name, values[number % PATTERNS])
            for number, name in enumerate(self.names if columns else ())
        ]
        return b'{"status":"success","data":{"resultType":"matrix","result":[%s]}}' % b",".join(series)


def serve(containers: int) -> None:
    """Answer range queries; print the address first, and serve the counts of requests and bytes at /counts."""
    past, counts = Past(containers), {"queries": 0, "bytes": 0}
    fake_http.SHORT = 1 << 40  # to pack an answer would take longer than all that is measured

    def answer(request: Request) -> Reply:
        if request.path == "/counts":
            return Reply(200, counts)
        asked = request.query
        body = past.answer(asked["query"], int(asked["start"]), int(asked["end"]))
        counts["queries"] += 1
        counts["bytes"] += len(body)
        return Reply(200, body)

    with HttpServer(answer) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        sys.stdin.read()


def measure(containers: int, rule: str) -> dict[str, float]:
    serving = [sys.executable, "-m", "tests.bench.history", "--serve", "--containers", str(containers)]
    server = subprocess.Popen(serving, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        url = server.stdout.readline().strip()
        command = [sys.executable, "-m", "rebalancer", "recommend", "--prometheus", url, "--rule", rule, "-v", "1"]
        command += ["--now", "2026-01-01T00:00:00Z", "--history", f"{DAYS * 24}h"]
        command += ["--min-days", str(DAYS), "-o", "table"]
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder, "output")
            wall, cpu, megabytes, told = took(command, output)
            workloads = output.read_text().count("Deployment/app-")
        with urllib.request.urlopen(f"{url}/counts", timeout=60) as answer:
            counts = json.load(answer)
    finally:
        server.kill()
        server.wait()
    assert workloads == containers // REPLICAS, f"{workloads} workloads have a number"
    progress = told.count("reading hours of history")
    return {"wall": wall, "cpu": cpu, "megabytes": megabytes, "progress": progress, **counts}


def page(rows: dict[str, dict[str, float]], containers: int) -> str:
    samples = containers * (DAYS * DAY // STEP + 1)
    lines = "\n".join(
        f"| {rule} | {row['wall']:.0f} | {row['cpu']:.0f} | {row['megabytes']:.0f} | {row['queries']:,} "
        f"| {row['bytes'] / 1e6:,.0f} | {row['progress']} |"
        for rule, row in rows.items()
    )
    return f"""\
# Recommendations from a long history

`rebalancer recommend --prometheus URL` on {containers:,} containers and {DAYS} days, every five minutes: \
{samples / 1e6:.0f} million samples, each of CPU and memory, from a server on the loopback that answers in \
Prometheus' format, in a process of its own. Each run once. `make bench` writes this page; \
[history.py](../../tests/bench/history.py) has the server. It counts the queries and the megabytes of its answers.

{machine()} \
The bounds are {LONGEST_SECONDS:.0f} s and {MOST_MEGABYTES:.0f} MB.

| rule | wall s | processor s | peak MB | queries | MB of answers | lines of progress |
|---|---|---|---|---|---|---|
{lines}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--containers", type=int, default=10_000)
    parser.add_argument("--no-write", action="store_true", help="write no page")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.containers)
        return 0
    rows = {rule: measure(given.containers, rule) for rule in RULES}
    text = page(rows, given.containers)
    sys.stdout.write(text)
    if not given.no_write:
        PAGE.write_text(text)
    passed = [rule for rule, row in rows.items() if row["wall"] > LONGEST_SECONDS or row["megabytes"] > MOST_MEGABYTES]
    if passed:
        sys.stdout.write(f"slower or larger than the bounds: {', '.join(passed)}\n")
    return int(bool(passed))


if __name__ == "__main__":
    sys.exit(main())
