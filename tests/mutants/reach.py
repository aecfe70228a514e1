"""Which test files run which lines of the program, so that a change is tried with those alone that can notice it.

A file of tests is measured once, in a process of its own, and again after it was changed.  Where it is not known what
a file runs, it counts as one that runs everything: where it starts the program as another process, and in a module
that was changed since.  What is set while a module is imported (constants, defaults, fields) is noticed by tests
that run any function of that module or of one that imports from it.
"""

import ast
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from tests.mutants.changes import Change
from tests.mutants.outcome import Outcome


@dataclass(frozen=True)
class Measured:
    """What one file of tests ran.

    Attributes:
        digest: of the file itself.
        failure: of the unchanged program; empty as a rule.
        seconds: of processor time.
        processes: whether it started Python as another process.
        lines: by module; those of functions and those that run on import.
        sources: digests of the modules, as they were then.
    """

    digest: str
    failure: str
    seconds: float
    processes: bool
    lines: Mapping[str, Sequence[int]]
    sources: Mapping[str, str]


class Source:
    """A module of the program: where its functions are, and where a change has an effect."""

    def __init__(self, path: Path, root: Path) -> None:
        self.name = str(path)
        self.text = (root / path).read_text()
        self.digest = digest(root / path)
        self._tree = ast.parse(self.text)

    @cached_property
    def body(self) -> frozenset[int]:
        """The lines of its functions' bodies."""
        functions = [node for node in ast.walk(self._tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        return frozenset(line for each in functions for line in range(each.body[0].lineno, (each.end_lineno or 0) + 1))

    @cached_property
    def imports(self) -> frozenset[str]:
        """The last words of the names of modules that it imports from."""
        found = [node for node in ast.walk(self._tree) if isinstance(node, ast.ImportFrom)]
        names = [(each.module or "").rpartition(".")[2] for each in found]
        return frozenset([*names, *(alias.name for each in found for alias in each.names)])

    def statement(self, line: int) -> frozenset[int]:
        """Return the lines of the innermost statement at a line, without those of statements in it.

        The line of an `except` or a `case` is part of a statement that has others in it: then these count too.
        """
        statements = [node for node in ast.walk(self._tree) if isinstance(node, ast.stmt)]
        heads = [span for span in map(_span, statements) if line in span]
        whole = [span for span in map(_whole, statements) if line in span]
        return frozenset(min(heads or whole, key=len))


def _whole(statement: ast.stmt) -> range:
    return range(statement.lineno, (statement.end_lineno or 0) + 1)


def _span(statement: ast.stmt) -> range:
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    first = getattr(body[0], "lineno", None) or body[0].pattern.lineno if body else None
    return range(statement.lineno, max(first or 0, statement.lineno + 1) if body else (statement.end_lineno or 0) + 1)


def digest(path: Path) -> str:
    """Return a short digest of a file."""
    return sha256(path.read_bytes()).hexdigest()[:16]


class Reach:
    """What is known of the files of tests; kept in a file between runs."""

    def __init__(self, kept: Path, root: Path) -> None:
        self._kept = kept
        self._root = root
        found = json.loads(kept.read_text()) if kept.exists() else {}
        self._measured = {name: Measured(**each) for name, each in found.items()}
        paths = sorted(path.relative_to(root) for path in (root / "rebalancer").rglob("*.py"))
        self._sources = {str(path): Source(path, root) for path in paths}

    def missing(self, tests: Iterable[str]) -> list[str]:
        """Return the files of tests that were not measured as they are now."""
        return [
            name
            for name in tests
            if name not in self._measured or self._measured[name].digest != digest(self._root / name)
        ]

    def keep(self, test: str, outcome: Outcome) -> None:
        """Keep what a file of tests has run."""
        sources = {name: each.digest for name, each in self._sources.items()}
        lines = {name: found for name, found in outcome.lines.items() if found}
        self._measured[test] = Measured(
            digest(self._root / test), outcome.failure, outcome.seconds, outcome.processes, lines, sources
        )
        self._kept.parent.mkdir(exist_ok=True)
        self._kept.write_text(json.dumps({name: asdict(each) for name, each in self._measured.items()}))

    def seconds(self, test: str) -> float:
        """Return the processor time of a file of tests."""
        return self._measured[test].seconds

    def failing(self, tests: Iterable[str]) -> list[str]:
        """Return the files of tests that fail without any change."""
        return [name for name in tests if self._measured[name].failure]

    def able(self, change: Change, tests: Iterable[str]) -> list[str]:
        """Return the files of tests that can notice a change."""
        source = self._sources[str(change.path)]
        if change.line in source.body:
            lines = {source.name: source.statement(change.line)}
        else:
            users = [each for each in self._sources.values() if change.path.stem in each.imports]
            lines = {each.name: each.body for each in [source, *users]}
        return [name for name in tests if self._runs(self._measured[name], lines)]

    def _runs(self, measured: Measured, lines: Mapping[str, frozenset[int]]) -> bool:
        if measured.processes:
            return True
        return any(
            measured.sources.get(name) != self._sources[name].digest
            or not wanted.isdisjoint(measured.lines.get(name, ()))
            for name, wanted in lines.items()
        )
