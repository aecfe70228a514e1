"""Changes the program a little, many times, and tells which changes no test notices.

    make mutants
    .venv/bin/python tests/mutants/mutants.py --number 50 --seed 7 --workers 1 engine kube/evictions.py
    .venv/bin/python tests/mutants/mutants.py --skip 137    # the rest of a run that was broken off

Each change is made in a copy of the tree.  The tests of its own package run first, then all other fast ones; the first
failure ends it.  A change that the tests survive is printed: it wants a test, or a line in `equivalent.py` that says
why it changes nothing.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from random import Random

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.conformance.corpus import VARIABLE, folder  # noqa: E402  the tree must be on the path
from tests.mutants.changes import Change, changes  # noqa: E402
from tests.mutants.equivalent import EQUIVALENT  # noqa: E402

PLACES = ("engine", "guards", "kube", "wire")
#: Tests that concern a package beside those of its own folder.
_NEAR: Mapping[str, Sequence[str]] = {
    "engine": ("tests/unit/guards", "tests/properties/test_limits.py"),
    "guards": ("tests/unit/engine", "tests/properties/test_limits.py", "tests/properties/test_protections.py"),
    "kube": ("tests/functional/test_eviction_trouble.py", "tests/functional/test_reading_trouble.py"),
    "wire": ("tests/unit/test_snapshot_file.py",),
}
_ALL = ("tests/unit", "tests/functional", "tests/properties", "tests/strategies", "tests/conformance")
_PARTS = ("rebalancer", "strategies", "policies", "examples", "tests", "docs", "pyproject.toml", "README.md")
#: Seconds after which tests count as failed: many a change makes an endless loop.
_NEAR_SECONDS = 240.0
_ALL_SECONDS = 1500.0


def main() -> None:
    wanted = _arguments()
    candidates = [each for path in _modules(wanted.places) for each in changes(path, (ROOT / path).read_bytes())]
    chosen = Random(wanted.seed).sample(candidates, min(wanted.number, len(candidates)))[wanted.skip :]
    alike = [change for change in chosen if change.name in EQUIVALENT]
    tried = [change for change in chosen if change.name not in EQUIVALENT]
    _say(f"{len(chosen)} of {len(candidates)} changes, seed {wanted.seed}")
    survivors = []
    for number, (change, killer) in enumerate(_tried(tried, wanted.workers), 1):
        _say(f"[{number}/{len(tried)}] {change}: {killer or 'SURVIVED'}")
        if not killer:
            survivors.append(change)
    _say(f"\n{len(tried) - len(survivors)} noticed, {len(alike)} known to change nothing, {len(survivors)} survived")
    for change in sorted(survivors, key=str):
        _say(f"  {change}")
    sys.exit(bool(survivors))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Change the program a little and see whether the tests notice.")
    parser.add_argument("places", nargs="*", default=PLACES, help="packages or modules below rebalancer/")
    parser.add_argument("--number", type=int, default=200, help="how many changes")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--skip", type=int, default=0, help="how many of these to leave out, the first ones")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="how many at the same time")
    return parser.parse_args()


def _modules(places: Sequence[str]) -> list[Path]:
    found = []
    for place in places:
        path = ROOT / "rebalancer" / place
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return [path.relative_to(ROOT) for path in found]


def _tried(tried: Sequence[Change], workers: int) -> Iterator[tuple[Change, str]]:
    """Yield each change with the test that noticed it, empty if none did."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as base, ThreadPoolExecutor(workers) as pool:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(workers):
            trees.put(_copy(Path(base) / str(number)))
        running = {pool.submit(_killer, change, trees): change for change in tried}
        for done in as_completed(running):
            yield running[done], done.result()


def _copy(tree: Path) -> Path:
    for part in _PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tree / part)
    return tree


def _killer(change: Change, trees: "SimpleQueue[Path]") -> str:
    tree = trees.get()
    path = tree / change.path
    source = path.read_bytes()
    try:
        path.write_bytes(change.applied(source))
        return _failure(tree, _near(change.path), _NEAR_SECONDS) or _failure(tree, _ALL, _ALL_SECONDS)
    finally:
        path.write_bytes(source)
        trees.put(tree)


def _near(path: Path) -> Sequence[str]:
    room = path.parts[1]
    own = f"tests/unit/{room}"
    alike = [f"{own}/test_{path.stem}.py", own]
    return [each for each in (*alike, *_NEAR.get(room, ())) if (ROOT / each).exists()]


def _failure(tree: Path, tests: Sequence[str], seconds: float) -> str:
    """Return the first failure of these tests in a tree, empty if they pass."""
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "--tb=no", "--hypothesis-seed=0", *tests]
    variables = {**os.environ, "PYTHONPATH": str(tree), VARIABLE: str(folder())}
    try:
        done = subprocess.run(
            command, cwd=tree, env=variables, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return "it takes too long"
    if done.returncode == 0:
        return ""
    said = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return said[0][:160] if said else f"pytest ends with {done.returncode}"


if __name__ == "__main__":
    main()
