"""A run of the tests that lacks something says so at its end, or fails where it must lack nothing."""

import sys

import pytest

from tests.absent import VARIABLE, pytest_configure
from tests.commands import run
from tests.conformance import corpus

#: Where neither the recorded cases nor the real Prometheus can be had.
BARE = {"PATH": "/nowhere", corpus.VARIABLE: "/nowhere", VARIABLE: ""}


def test_a_laptop_without_the_rest_is_told_what_was_not_shown():
    """What is missing skips its tests, and the last lines count them."""
    tests = ("tests/conformance", "tests/unit/usage/test_prometheus.py")

    done = run(sys.executable, "-m", "pytest", "-q", *tests, env=BARE)

    *lines, figures = done.stdout.splitlines()[-3:]
    assert "skipped" in figures
    assert [line.split(": ", 2)[2].split(";")[0] for line in lines] == [
        "there are no recorded cases in /nowhere",
        "there is no prometheus and no promtool: apt-get install prometheus",
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("conformance", "asks for conformance, but there"),
        ("prometheus", "asks for prometheus, but there"),
        ("promtheus", "'promtheus' is not known"),
    ],
)
def test_what_is_required_may_not_be_missing(name, words, monkeypatch):
    """The run ends before its first test, and says what it lacks; a slip of the pen switches no requirement off."""
    for variable, value in {**BARE, VARIABLE: name}.items():
        monkeypatch.setenv(variable, value)

    with pytest.raises(pytest.UsageError, match=words):
        pytest_configure()
