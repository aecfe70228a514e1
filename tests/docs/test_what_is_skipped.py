"""A run of the tests that lacks something says so at its end, or fails where it must lack nothing."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.absent import VARIABLE
from tests.conformance import corpus

ROOT = Path(__file__).parents[2]


def run(environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the tests of the recorded cases and of the real Prometheus where neither can be had."""
    bare = {"PATH": "/nowhere", corpus.VARIABLE: "/nowhere"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tests/conformance", "tests/unit/usage/test_prometheus.py"],
        cwd=ROOT,
        env={**os.environ, VARIABLE: "", **bare, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_laptop_without_the_rest_is_told_what_was_not_shown() -> None:
    """What is missing skips its tests, and the last lines count them."""
    done = run({})

    assert done.returncode == 0, done.stdout
    *lines, figures = done.stdout.splitlines()[-3:]
    assert "skipped" in figures
    assert [line.split(": ", 2)[2].split(";")[0] for line in lines] == [
        "there are no recorded cases in /nowhere",
        "there is no prometheus and no promtool: apt-get install prometheus",
    ]


@pytest.mark.parametrize("name", ["conformance", "prometheus"])
def test_what_is_required_may_not_be_missing(name: str) -> None:
    """The run ends before its first test, and says what it lacks."""
    done = run({VARIABLE: name})

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"{VARIABLE} asks for {name}, but there" in done.stderr


def test_a_requirement_that_nobody_knows_is_an_error() -> None:
    """A slip of the pen may not switch a requirement off."""
    done = run({VARIABLE: "promtheus"})

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "'promtheus' is not known" in done.stderr
