"""How the output of a run with failures ends."""

import subprocess
import sys
from pathlib import Path

TESTS = """
import pytest

def test_first():
    assert {"a": 1} == {"a": 2}, "the first's words"

def test_fine():
    pass

@pytest.fixture
def broken():
    raise ValueError("the fixture's words")

def test_second(broken):
    pass
"""


def test_each_failure_s_own_words_come_last(tmp_path: Path) -> None:
    """Name and exception of each, after the logs and right before pytest's last line."""
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.e2e.conftest", "-c", "/dev/null", "--rootdir"]

    done = subprocess.run(
        [*command, str(tmp_path), str(tmp_path)], stdout=subprocess.PIPE, text=True, check=False, timeout=300
    )

    *_, last = done.stdout.splitlines()
    _, marked, words = done.stdout.partition("what failed")
    assert marked, done.stdout
    assert "1 failed, 1 passed, 1 error" in last
    assert "short test summary" not in words
    first = ("test_first (call)", "the first's words", "assert {'a': 1} == {'a': 2}")
    positions = [words.index(each) for each in (*first, "test_second (setup)", "ValueError: the fixture's words")]
    assert positions == sorted(positions)
