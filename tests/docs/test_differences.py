"""What docs/differences.md says is shown: each of its rows names a test, and the tests are run.

Those that the present run has anyway are not run a second time here: they would make the longest test of all.
"""

import re
import sys
from collections import defaultdict

import pytest

from tests.commands import ROOT, run

_NAMED = re.compile(r"`(tests/[\w/]+\.py::\w+)` \|$")
_OUTCOME = re.compile(r"^(tests/[\w/]+\.py::\w+)\b.* (PASSED|FAILED|SKIPPED|ERROR)\b")
#: Its tests need a control plane; whoever names one of them here lets it run there.
_ELSEWHERE = "tests/e2e/"


def rows():
    lines = (ROOT / "docs/differences.md").read_text().splitlines()
    return [line for line in lines if line.startswith("| ") and not line.startswith("| here |")]


def named(row):
    """Return the test that a row names, empty if it names none."""
    found = _NAMED.search(row)
    return found[1] if found else ""


def outcomes(tests):
    """Run tests and return what became of each, whatever its parameters."""
    done = run(sys.executable, "-m", "pytest", "-v", "--tb=no", *tests, code=None, timeout=1800)
    found = defaultdict(set)
    for line in done.stdout.splitlines():
        if outcome := _OUTCOME.match(line):
            found[outcome[1]].add(outcome[2])
    return found


@pytest.mark.parametrize("row", rows())
def test_each_difference_names_a_test(row):
    """A row that names none, or one that is gone, is a claim without proof."""
    path, _, function = named(row).partition("::")

    assert path
    assert f"def {function}(" in (ROOT / path).read_text()


@pytest.mark.timeout(1800)  # it may be as long as all of them together
def test_the_tests_of_all_differences_pass(request):
    """Each is run and passes, here or in this run: none is there by name only."""
    run_anyway = {item.nodeid.partition("[")[0] for item in request.session.items}
    tests = sorted({named(row) for row in rows() if not named(row).startswith(_ELSEWHERE)} - run_anyway)

    found = outcomes(tests) if tests else {}

    skipped = [test for test in tests if found.get(test) == {"SKIPPED"}]
    passed = [test for test in tests if found.get(test, set()) - {"SKIPPED"} == {"PASSED"}]
    assert sorted([*skipped, *passed]) == tests
    if skipped:
        pytest.skip(f"what they need is missing: {', '.join(skipped)}")
