"""Changes the program a little, many times, and tells which changes no test notices.

    make mutants
    .venv/bin/python tests/mutants/mutants.py --number 50 --seed 7 --workers 1 engine kube/evictions.py

Each change is made in a copy of the tree, and tried with the tests that run the changed line (`reach.py`): first those
of its own package, quickest first; then, if these pass, all other fast ones.  The first failure ends it.  A change
that the tests survive is printed: it wants a test, or a line in `equivalent.py` that says why it changes nothing.

What was measured and what was noticed is kept in `.mutants`, so a run that was broken off goes on where it was; a
survivor is tried again, and so is every change of a module that has been edited.

With `--near` (the tests of the changed package alone) 200 changes took 35 minutes on a machine of two cores that did
much else.  So many were noticed by the tests of their package at first, when no test had been written for them, and
after tests for most of the others:

    seed 0   148 of 200
    seed 3   175 of 199, then 190
    seed 4   141 of 166, then 182 of 198
    seed 5   178 of 200, then all
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue
from typing import NoReturn, Self, TypeVar

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
os.environ["PYTHONPATH"] = str(ROOT)  # for the process from which runs of the tests are forked

from tests.mutants.bench import Bench  # noqa: E402  the tree must be on the path
from tests.mutants.changes import Change, changes  # noqa: E402
from tests.mutants.equivalent import EQUIVALENT  # noqa: E402
from tests.mutants.noticed import Noticed  # noqa: E402
from tests.mutants.outcome import Limits, Outcome  # noqa: E402
from tests.mutants.reach import Reach  # noqa: E402

PLACES = ("engine", "guards", "kube", "wire")
TESTS = ("tests/unit", "tests/properties", "tests/strategies", "tests/functional", "tests/conformance")
_PARTS = ("rebalancer", "strategies", "policies", "chart", "examples", "tests", "docs", "pyproject.toml", "README.md")
_KEPT = ROOT / ".mutants"
#: Of the unchanged program; only broken tests come near it.
_MEASURING = Limits(test=600.0, work=900.0)

Job = TypeVar("Job")


def main() -> None:
    wanted = _arguments()
    candidates = [each for path in _modules(wanted.places) for each in changes(path, (ROOT / path).read_bytes())]
    chosen = sorted(candidates, key=lambda change: lot(change, wanted.seed))[: wanted.number]
    tried = [change for change in chosen if change.name not in EQUIVALENT]
    _say(f"{len(chosen)} of {len(candidates)} changes, seed {wanted.seed}")
    signal.signal(signal.SIGTERM, _end)
    with tempfile.TemporaryDirectory(prefix="mutants-") as base, Run(Path(base), wanted.workers) as run:
        survivors = run.survivors(tried, _files(wanted.tests), near=True)
        _say(f"{len(tried) - len(survivors)} noticed by the tests of their package, {len(survivors)} not")
        if not wanted.near:
            survivors = run.survivors(survivors, _files(wanted.tests), near=False)
    alike = len(chosen) - len(tried)
    _say(f"\n{len(tried) - len(survivors)} noticed, {alike} known to change nothing, {len(survivors)} survived")
    for change in sorted(survivors, key=str):
        _say(f"  {change}")
    sys.exit(bool(survivors))


def _end(number: int, _frame: object) -> NoReturn:
    """End like after Ctrl-C: the copies of the tree are removed."""
    sys.exit(128 + number)


def lot(change: Change, seed: int) -> bytes:
    """Return what a change draws; it draws the same however much of the program is edited elsewhere."""
    return sha256(f"{seed} {change.name}".encode()).digest()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Change the program a little and see whether the tests notice.")
    parser.add_argument("places", nargs="*", default=PLACES, help="packages or modules below rebalancer/")
    parser.add_argument("--number", type=int, default=200, help="how many changes")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="how many at the same time")
    parser.add_argument("--near", action="store_true", help="run the tests of the changed package alone")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="folders and files of tests")
    return parser.parse_args()


def _modules(places: Sequence[str]) -> list[Path]:
    found = []
    for place in places:
        path = ROOT / "rebalancer" / place
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return [path.relative_to(ROOT) for path in found]


def _files(tests: Sequence[str]) -> list[str]:
    paths = [ROOT / each for each in tests]
    found = [file for path in paths for file in (sorted(path.rglob("test_*.py")) if path.is_dir() else [path])]
    return [str(path.relative_to(ROOT)) for path in found]


class Run:
    """Tries changes in copies of the tree, as many at a time as there are copies."""

    def __init__(self, base: Path, workers: int) -> None:
        self._benches: SimpleQueue[Bench] = SimpleQueue()
        self._all: list[Bench] = []
        self._pool = ThreadPoolExecutor(workers)
        original = _copy(base / "original")  # while this runs, somebody may edit what it was copied from
        self._reach = Reach(_KEPT / "reach.json", original)
        self._noticed = Noticed(_KEPT / "noticed.json", original)
        for number in range(workers):
            self._all.append(Bench(_copy(base / str(number))))
            self._benches.put(self._all[-1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the copies are about to be removed anyway
        self._pool.shutdown(wait=False, cancel_futures=True)
        for bench in self._all:
            bench.stop()
        self._pool.shutdown()

    def survivors(self, tried: Sequence[Change], tests: Sequence[str], *, near: bool) -> list[Change]:
        """Return the changes that these tests do not notice, those of their own package or all others."""
        tests_of = {change: [each for each in tests if _is_near(change, each) == near] for change in tried}
        left = [change for change in tried if not self._noticed.by(change)]
        self._measure(sorted({each for change in left for each in tests_of[change]}))
        survivors = []
        for number, (change, failure) in enumerate(self._each(left, lambda *job: self._failure(*job, tests_of)), 1):
            _say(f"[{number}/{len(left)}] {change}: {failure or 'SURVIVED'}")
            if failure:
                self._noticed.keep(change, failure)
            else:
                survivors.append(change)
        return survivors

    def _measure(self, tests: Sequence[str]) -> None:
        def measured(bench: Bench, test: str) -> Outcome:
            return bench.run([test], _MEASURING, lines=True)

        missing = self._reach.missing(tests)
        for number, (test, outcome) in enumerate(self._each(missing, measured), 1):
            _say(f"[{number}/{len(missing)}] {test}: {outcome.seconds:.1f} s {outcome.failure}")
            self._reach.keep(test, outcome)
        for test in self._reach.failing(tests):
            _say(f"{test} fails without any change, and is left out")

    def _failure(self, bench: Bench, change: Change, tests_of: dict[Change, list[str]]) -> str:
        failing = self._reach.failing(tests_of[change])
        able = [each for each in self._reach.able(change, tests_of[change]) if each not in failing]
        if not able:
            return ""
        seconds = [self._reach.seconds(each) for each in able]
        limits = Limits(test=60 + 20 * max(seconds), work=20 + 5 * sum(seconds))
        path = bench.tree / change.path
        source = path.read_bytes()
        try:
            path.write_bytes(change.applied(source))
            return bench.run(sorted(able, key=lambda each: self._place(change, each)), limits).failure
        finally:
            path.write_bytes(source)

    def _place(self, change: Change, test: str) -> tuple[bool, bool, float]:
        is_its_own = Path(test).stem.startswith(f"test_{change.path.stem}")
        return not is_its_own, not test.startswith("tests/unit"), self._reach.seconds(test)

    def _each(self, jobs: Sequence[Job], do: Callable[[Bench, Job], Outcome | str]) -> Iterator[tuple[Job, object]]:
        """Yield each job with what came of it."""

        def done(job: Job) -> Outcome | str:
            bench = self._benches.get()
            try:
                return do(bench, job)
            finally:
                self._benches.put(bench)

        running = {self._pool.submit(done, job): job for job in jobs}
        for each in as_completed(running):
            yield running[each], each.result()


def _is_near(change: Change, test: str) -> bool:
    return test.startswith(f"tests/unit/{change.path.parts[1]}/")


def _copy(tree: Path) -> Path:
    for part in _PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tree / part)
    return tree


if __name__ == "__main__":
    main()
