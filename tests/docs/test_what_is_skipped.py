"""A run of the tests fails where it must lack nothing, and lacks something."""

import pytest

from tests.absent import VARIABLE, pytest_configure
from tests.conformance import corpus

#: Where neither the recorded cases nor the real Prometheus can be had.
BARE = {"PATH": "/nowhere", corpus.VARIABLE: "/nowhere", VARIABLE: ""}


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
