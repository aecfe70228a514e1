"""What docs/differences.md says is shown: each of its rows names a test, which runs with all others."""

import re

import pytest

from tests.commands import ROOT

_NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)` \|$")


def rows():
    lines = (ROOT / "docs/differences.md").read_text().splitlines()
    return [line for line in lines if line.startswith("| ") and not line.startswith("| here |")]


@pytest.mark.parametrize("row", rows())
def test_each_difference_names_a_test(row):
    """A row that names none, or one that is gone, is a claim without proof."""
    named = _NAMED.search(row)

    assert named
    assert f"def {named[2]}(" in (ROOT / named[1]).read_text()
