"""The code that `completion` prints works in the real shells: commands and options are completed."""

import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import pyte
import pytest
from click.shell_completion import BashComplete

from rebalancer.cli.main import main
from tests.absent import missing_shell
from tests.commands import run
from tests.fake_api_server import FakeApiServer
from tests.functional.program import TIMEOUT_SECONDS

#: The program that the shells call stands beside Python.
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
#: Words are the program's, and files the shell's.
CASES = [
    ("rebalancer run --max-e", "rebalancer run --max-evictions"),
    ("rebalancer run --policy examples/clu", "rebalancer run --policy examples/cluster.json"),
]
#: What is offered where the last word ends so, whatever the shell.
WORDS = {
    "vali": ["validate"],
    "run --max-e": ["--max-evictions"],
    "run --policy dem": ["demo"],
    "run --kubeconfig config --context sta": ["staging"],
    "strategies PodL": ["PodLifeTime"],
    "presets dem": ["demo"],
}


def needs(shell):
    return pytest.mark.skipif(bool(missing_shell(shell)), reason=missing_shell(shell))


class Shell:
    """A shell on a terminal: keys in, a screen out."""

    def __init__(self, folder: Path, *command: str) -> None:
        self._ours, theirs = os.openpty()
        self._screen = pyte.Screen(120, 24)
        self._stream = pyte.ByteStream(self._screen)
        surroundings = {"PATH": PATH, "HOME": str(folder), "TERM": "xterm", "PS1": "ready> ", "LANG": "C.UTF-8"}
        self._process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=surroundings, cwd=folder, start_new_session=True
        )
        os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:
            self._process.kill()
        os.close(self._ours)

    def show(self, keys: str, line: str) -> None:
        """Type, and wait until this is the last line on the screen."""
        os.write(self._ours, keys.encode())
        until = time.monotonic() + TIMEOUT_SECONDS
        while self._last() != line:
            assert time.monotonic() < until, self._screen.display
            if select.select([self._ours], [], [], 0.1)[0]:
                self._stream.feed(os.read(self._ours, 65_536))

    def _last(self) -> str:
        return next((line.rstrip() for line in reversed(self._screen.display) if line.strip()), "")


#: Ctrl-U.
CLEAR_THE_LINE = "\x15"
#: How a shell is started bare, and what makes it complete.
BARE = {
    "bash": (("bash", "--norc", "--noprofile", "-i"), "source <(rebalancer completion bash)"),
    "zsh": (
        ("zsh", "-f", "-i"),
        "PS1='ready> '; autoload -Uz compinit; compinit -u; source <(rebalancer completion zsh)",
    ),
}


@pytest.fixture
def folder(tmp_path: Path, server: FakeApiServer) -> Path:
    """Where one types: with a cluster file, and the kubeconfig of a server."""
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "cluster.json").touch()
    server.kubeconfig(tmp_path, context="staging").rename(tmp_path / "config")
    return tmp_path


@pytest.mark.parametrize(("typed", "offered"), WORDS.items())
def test_words_are_completed(folder: Path, monkeypatch: pytest.MonkeyPatch, typed: str, offered: list[str]) -> None:
    """Commands, options, presets, strategies, and contexts of the kubeconfig that is named."""
    monkeypatch.chdir(folder)
    *before, begun = typed.split()

    found = BashComplete(main, {}, "rebalancer", "_REBALANCER_COMPLETE").get_completions(before, begun)

    assert [each.value for each in found] == offered


@pytest.mark.parametrize("shell", [pytest.param(each, marks=needs(each)) for each in BARE])
def test_the_tabulator_completes(folder: Path, shell: str) -> None:
    """Typed on a terminal, the screen shows the whole word."""
    command, setting = BARE[shell]
    with Shell(folder, *command) as terminal:
        terminal.show(f"{setting}; clear\n", "ready>")
        for typed, completed in CASES:
            terminal.show(f"{typed}\t", f"ready> {completed}")
            terminal.show(CLEAR_THE_LINE, "ready>")


@needs("fish")
def test_fish_completes(folder: Path) -> None:
    """As fish itself tells what it would offer."""
    asked = "; ".join(f"complete --do-complete '{typed}'" for typed, _ in CASES)
    command = ["fish", "--no-config", "-c", f"rebalancer completion fish | source; {asked}"]

    done = run(*command, env={"PATH": PATH, "HOME": str(folder), "LANG": "C.UTF-8"}, cwd=folder)

    assert done.stderr == ""
    offered = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert offered == [completed.rsplit(maxsplit=1)[-1] for _, completed in CASES]
