"""`make` says what it can do, and in one line what it lacks."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--silent", "--no-print-directory", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def interpreter(folder: Path, answer: str) -> str:
    """Write a stand-in for an interpreter, which answers every question with this line of shell."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{answer}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param("exit 1", "rebalancer needs Python 3.11 or newer, and {python} is none", id="an old Python"),
        pytest.param(
            'case "$*" in *ensurepip*) exit 1;; esac',
            "{python} lacks the venv module (on Debian: apt-get install python3-venv)",
            id="no venv module",
        ),
    ],
)
@pytest.mark.parametrize("target", ["demo", "test"])
def test_what_is_missing_is_said_in_one_line(tmp_path: Path, target: str, answer: str, words: str) -> None:
    python, environment = interpreter(tmp_path, answer), tmp_path / "venv"

    done = make(target, f"PYTHON={python}", f"VENV={environment}")

    assert done.returncode
    assert done.stdout.splitlines() == [words.format(python=python)]
    assert not environment.exists()


def test_no_python_at_all_is_said_in_one_line(tmp_path: Path) -> None:
    done = make("demo", "PYTHON=", f"VENV={tmp_path / 'venv'}")

    assert done.returncode
    assert re.fullmatch(r"rebalancer needs Python 3\.11 or newer and finds none; set PYTHON=.*\n", done.stdout)


def test_help_lists_every_target() -> None:
    """Each with a word on what it is for."""
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)

    listed = [line.split()[1] for line in make("help").stdout.splitlines()]

    assert phony
    assert sorted(listed) == sorted(phony[1].split())
