"""Runs tests in a copy of the tree, each time in a process of its own that begins with all libraries imported.

Starting Python and importing libraries takes longer than most tests do.  So it happens once, in the process that
`multiprocessing` forks from; a run forgets the program's own modules and imports those of its tree.
"""

import compileall
import io
import multiprocessing
import os
import resource
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Any

import pytest
from coverage import Coverage

from tests.conformance.corpus import VARIABLE, folder
from tests.mutants.outcome import Limits, Outcome

#: What is imported from the tree each time.
_OWN = ("rebalancer", "strategies", "tests")
_OPTIONS = (
    "-q",
    "-x",
    "--tb=no",
    "-p",
    "no:xdist",
    "--hypothesis-seed=0",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
)


class Bench:
    """Runs tests in one tree, one run at a time."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self._child: Any = None
        self._is_over = False
        for part in _OWN:  # with a hash of its source each, so that what was compiled is never taken for what changed
            compileall.compile_dir(tree / part, quiet=2, force=True, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.mutants.preload"])

    def run(self, tests: Sequence[str], limits: Limits, *, lines: bool = False) -> Outcome:
        """Run these tests up to the first failure."""
        here, there = self._context.Pipe(duplex=False)
        child = self._context.Process(target=_run, args=(there, self.tree, tests, limits, lines))
        child.start()
        self._child = child
        there.close()
        if self._is_over:
            self.stop()
        try:
            return Outcome(*here.recv())
        except EOFError:
            child.join()
            return Outcome(_end(child.exitcode), limits.work)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.join()
            self._child = None

    def stop(self) -> None:
        """End the tests that run; called from another thread, once nothing more is to be run."""
        self._is_over = True
        if child := self._child:
            child.kill()  # what it has started goes by `run`, as always


def _end(code: int | None) -> str:
    return "it takes too long" if code == -signal.SIGXCPU else f"the process ends with {code}"


class _Watch:
    """A plugin of pytest that keeps the first failure."""

    def __init__(self) -> None:
        self.failure = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._keep(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._keep(report)

    def _keep(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed:
            self.failure = self.failure or report.nodeid


def _run(there: Connection, tree: Path, tests: Sequence[str], limits: Limits, lines: bool) -> None:
    """Run tests in this process, which is a fresh one, and send how they ended."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (int(limits.work) + 1, int(limits.work) + 9))  # soft, hard
    _enter(tree, keep_compiled=lines)
    started: list[Any] = []
    sys.addaudithook(lambda event, arguments: started.append(event) if _starts_python(event, arguments) else None)
    measured = Coverage(data_file=None, config_file=False, source=[str(tree / "rebalancer")]) if lines else None
    watch = _Watch()
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        if measured:
            measured.start()
        code = pytest.main([*_OPTIONS, f"--timeout={limits.test}", *tests], plugins=[watch])
        if measured:
            measured.stop()
    failure = watch.failure or (f"pytest ends with {code}" if code else "")
    there.send((failure, _seconds(), _lines(measured, tree) if measured else {}, bool(started)))


def _enter(tree: Path, *, keep_compiled: bool) -> None:
    os.chdir(tree)
    shutil.rmtree(tree / ".hypothesis", ignore_errors=True)
    os.environ |= {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", VARIABLE: str(folder())}
    sys.dont_write_bytecode = not keep_compiled  # of the tests, as pytest compiles them
    sys.path.insert(0, str(tree))
    for name in [name for name in sys.modules if name.partition(".")[0] in _OWN]:
        del sys.modules[name]


def _starts_python(event: str, arguments: tuple[Any, ...]) -> bool:
    return event == "subprocess.Popen" and "python" in str(arguments[:2])


def _seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _lines(measured: Coverage, tree: Path) -> Mapping[str, Sequence[int]]:
    data = measured.get_data()
    paths = {str(Path(path).relative_to(tree)): path for path in data.measured_files()}
    return {name: sorted(data.lines(path) or ()) for name, path in paths.items()}
