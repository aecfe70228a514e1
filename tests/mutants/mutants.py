"""Changes the program a little, many times, and tells which changes no test notices.

    make mutants
    .venv/bin/python tests/mutants/mutants.py --number 50 --seed 7 --workers 1 engine kube/evictions.py

Each change is made in a copy of the tree, and tried with the files of tests that run the changed function (`reach.py`)
or start the program as another process, those of its own package first.  The first failure ends it.  A change that the
tests survive is printed: it wants a test, or a line in `equivalent.py` that says why it changes nothing.

What tests reach and what was noticed is kept in `.mutants`, so a run that was broken off goes on where it was; a
survivor is tried again, and so is every change of a module that has been edited.
"""

import argparse
import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NoReturn, Self

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.conformance.corpus import VARIABLE, folder  # noqa: E402  the tree must be on the path
from tests.mutants.changes import Change, changes  # noqa: E402
from tests.mutants.equivalent import EQUIVALENT  # noqa: E402

PLACES = ("engine", "eviction", "kube")
TESTS = ("tests/unit", "tests/properties", "tests/strategies", "tests/functional", "tests/conformance")
_PARTS = ("rebalancer", "strategies", "policies", "chart", "examples", "tests", "docs", "pyproject.toml", "README.md")
_KEPT = ROOT / ".mutants"
#: After which the tests of a change count as failed: many a change makes an endless loop.
_LONGEST_TEST, _LONGEST_RUN = 120, 1800.0


def main() -> None:
    wanted = _arguments()
    paths = [path.relative_to(ROOT) for place in wanted.places for path in _modules(ROOT / "rebalancer" / place)]
    candidates = [each for path in paths for each in changes(path, (ROOT / path).read_bytes())]
    chosen = sorted(candidates, key=lambda change: lot(change, wanted.seed))[: wanted.number]
    tried = [change for change in chosen if change.name not in EQUIVALENT]
    _say(f"{len(chosen)} of {len(candidates)} changes, seed {wanted.seed}")
    signal.signal(signal.SIGTERM, _end)
    with tempfile.TemporaryDirectory(prefix="mutants-") as base, Run(Path(base), wanted.workers) as run:
        survivors = run.survivors(tried, near=wanted.near)
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
    return parser.parse_args()


def _modules(place: Path) -> Sequence[Path]:
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


class Run:
    """Tries changes in copies of the tree, as many at a time as there are copies."""

    def __init__(self, base: Path, workers: int) -> None:
        self._original = _copy(base / "original")  # while this runs, somebody may edit what it was copied from
        self._trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(workers):
            self._trees.put(_copy(base / str(number)))
        self._pool = ThreadPoolExecutor(workers)
        self._running: set[subprocess.Popen[str]] = set()
        self._noticed: dict[str, str] = _read(_KEPT / "noticed.json")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the copies are about to be removed anyway
        self._pool.shutdown(wait=False, cancel_futures=True)
        for each in set(self._running):
            _kill(each)
        self._pool.shutdown()

    def survivors(self, tried: Sequence[Change], *, near: bool) -> list[Change]:
        """Return the changes that the tests do not notice, or those of their own package alone."""
        left = [change for change in tried if self._key(change) not in self._noticed]
        files = [str(path.relative_to(ROOT)) for each in TESTS for path in sorted((ROOT / each).rglob("test_*.py"))]
        files = [each for each in files if not near or any(_is_near(change, each) for change in left)]
        reach = self._reach(files)
        jobs = {self._pool.submit(self._failure, change, _able(change, reach, near=near)): change for change in left}
        survivors = []
        for number, job in enumerate(as_completed(jobs), 1):
            change, failure = jobs[job], job.result()
            _say(f"[{number}/{len(left)}] {change}: {failure or 'SURVIVED'}")
            if failure:
                self._noticed[self._key(change)] = failure
                _write(_KEPT / "noticed.json", self._noticed)
            else:
                survivors.append(change)
        return survivors

    def _reach(self, files: Sequence[str]) -> Mapping[str, Any]:
        """Measure what files of tests run, unless that is known of these files and this program."""
        sources = sorted((self._original / "rebalancer").rglob("*.py"))
        all_of_them = [*sources, *(self._original / each for each in files)]
        kept = _KEPT / f"reach-{sha256(b''.join(each.read_bytes() for each in all_of_them)).hexdigest()[:16]}.json"
        if not kept.exists():
            _say(f"measuring what {len(files)} files of tests run")
            _write(kept, json.loads(self._python(self._original, "tests.mutants.reach", *files)))
        return _read(kept)

    def _failure(self, change: Change, files: Sequence[str]) -> str:
        """Return the first test that fails, empty if none does."""
        tree = self._trees.get()
        path = tree / change.path
        source = path.read_bytes()
        try:
            path.write_bytes(change.applied(source))
            options = ("-q", "-x", "--tb=no", "-p", "no:xdist", "--hypothesis-seed=0", f"--timeout={_LONGEST_TEST}")
            said = self._python(tree, "pytest", *options, *files) if files else ""
        except subprocess.TimeoutExpired:
            return "it takes too long"
        finally:
            path.write_bytes(source)
            self._trees.put(tree)
        found = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
        return found[1] if found else "" if " passed" in said or not files else "the tests end without a result"

    def _python(self, tree: Path, *module: str) -> str:
        """Run a module in a tree, and return what it prints."""
        environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", VARIABLE: str(folder())}
        command = [sys.executable, "-m", *module]
        process = subprocess.Popen(
            command,
            cwd=tree,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self._running.add(process)
        try:
            return process.communicate(timeout=_LONGEST_RUN)[0]
        finally:
            _kill(process)
            self._running.discard(process)

    def _key(self, change: Change) -> str:
        digest = sha256((self._original / change.path).read_bytes()).hexdigest()[:16]
        return f"{digest} {change.start} {change}"


def _able(change: Change, reach: Mapping[str, Any], *, near: bool) -> list[str]:
    """Return the files that may notice a change: those that run its function, or at the top of a module any line.

    Those of its own package come first, of them those of its own name.
    """
    whole = ast.parse((ROOT / change.path).read_bytes())
    functions = [node for node in ast.walk(whole) if isinstance(node, ast.FunctionDef)]
    bodies = [range(each.body[0].lineno, (each.end_lineno or 0) + 1) for each in functions]
    around = min((each for each in bodies if change.line in each), key=len, default=None)
    lines = reach["lines"].get(str(change.path), {})
    found = {file for line, files in lines.items() if around is None or int(line) in around for file in files if file}
    found |= {*reach["processes"]}
    own = f"test_{change.path.stem}"
    order = sorted(found, key=lambda each: (not _is_near(change, each), not Path(each).stem.startswith(own), each))
    return [each for each in order if not near or _is_near(change, each)]


def _is_near(change: Change, test: str) -> bool:
    return test.startswith(f"tests/unit/{change.path.parts[1]}/")


def _kill(process: "subprocess.Popen[str]") -> None:
    """End a process and all that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {}


def _write(path: Path, document: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=1))


def _copy(tree: Path) -> Path:
    for part in _PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            tree.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, tree / part)
    return tree


if __name__ == "__main__":
    main()
