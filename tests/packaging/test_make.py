"""`make` says what it can do, and in one line what it lacks."""

import re
import shutil

import pytest

from tests.commands import ROOT, run


def make(*arguments, code=0):
    return run("make", "--silent", "--no-print-directory", *arguments, code=code).stdout


def interpreter(folder, answer):
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
def test_what_is_missing_is_said_in_one_line(tmp_path, target, answer, words):
    python, environment = interpreter(tmp_path, answer), tmp_path / "venv"

    said = make(target, f"PYTHON={python}", f"VENV={environment}", code=2)

    assert said.splitlines() == [words.format(python=python)]
    assert not environment.exists()


def test_no_python_at_all_is_said_in_one_line(tmp_path):
    said = make("demo", "PYTHON=", f"VENV={tmp_path / 'venv'}", code=2)

    assert re.fullmatch(r"rebalancer needs Python 3\.11 or newer and finds none; set PYTHON=.*\n", said)


def test_a_checkout_may_have_blanks_in_its_path(tmp_path):
    folder = tmp_path / "a b"
    (folder / ".venv/bin").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    interpreter(folder / ".venv/bin", 'echo "$PYTHONPYCACHEPREFIX"')
    (folder / ".venv/ready").touch()

    assert run("make", "--silent", "attack", cwd=folder).stdout.strip() == f"{folder}/.venv/compiled"


def test_help_lists_every_target():
    """Each with a word on what it is for."""
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)

    listed = [line.split()[1] for line in make("help").splitlines()]

    assert phony
    assert sorted(listed) == sorted(phony[1].split())
