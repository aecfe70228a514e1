"""The code that `completion` prints works in the real shells: commands and options are completed."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.shell_completion import BashComplete

from rebalancer.cli.main import main
from tests.absent import missing_shell
from tests.commands import run
from tests.fake_api_server import FakeApiServer
from tests.functional.terminal import Terminal

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
    """Typed on a terminal, the shell writes the rest of the word."""
    command, setting = BARE[shell]
    env = {"PATH": PATH, "HOME": str(folder), "TERM": "dumb", "PS1": "ready> ", "LANG": "C.UTF-8"}

    def start(*arguments: str, **settings: Any) -> "subprocess.Popen[str]":
        return subprocess.Popen(arguments, env=env, cwd=folder, start_new_session=True, **settings)

    with Terminal(SimpleNamespace(start=start), *command) as terminal:
        terminal.type(f"{setting}\n")
        terminal.read_until("ready> ")
        for typed, completed in CASES:
            terminal.type(f"{typed}\t")
            terminal.read_until(completed)
            terminal.type(CLEAR_THE_LINE)
        terminal.process.kill()
        terminal.process.wait()


@needs("fish")
def test_fish_completes(folder: Path) -> None:
    """As fish itself tells what it would offer."""
    asked = "; ".join(f"complete --do-complete '{typed}'" for typed, _ in CASES)
    command = ["fish", "--no-config", "-c", f"rebalancer completion fish | source; {asked}"]

    done = run(*command, env={"PATH": PATH, "HOME": str(folder), "LANG": "C.UTF-8"}, cwd=folder)

    assert done.stderr == ""
    offered = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert offered == [completed.rsplit(maxsplit=1)[-1] for _, completed in CASES]
