"""A change is tried with every file of tests that may notice it, and with no other."""

from pathlib import Path

import pytest

from tests.mutants.changes import Change
from tests.mutants.outcome import Outcome
from tests.mutants.reach import Reach

FITS = """LIMIT = 3


def fits(size):
    if size > (
        LIMIT
    ):
        return False
    return True


def other():
    return 1
"""
USES = """from rebalancer.fits import LIMIT


def used():
    return LIMIT
"""
MODULE, TESTS = Path("rebalancer/fits.py"), ("test_a.py", "test_b.py")


@pytest.fixture
def root(tmp_path):
    (tmp_path / "rebalancer").mkdir()
    (tmp_path / MODULE).write_text(FITS)
    (tmp_path / "rebalancer/uses.py").write_text(USES)
    for name in TESTS:
        (tmp_path / name).write_text(f"# {name}")
    return tmp_path


TRIES = """def tries(act):
    try:
        return act()
    except ValueError:
        return None
"""


def reach(root, a, b, *, processes=False):
    """What is known where two files of tests ran these lines by module."""
    found = Reach(root / "kept.json", root)
    found.keep("test_a.py", Outcome("", 1.0, a, processes=processes))
    found.keep("test_b.py", Outcome("", 1.0, b))
    return Reach(root / "kept.json", root)


def able(found, line):
    return found.able(Change(MODULE, line, "", "", 0, 0, ""), TESTS)


@pytest.mark.parametrize(("line", "tests"), [(6, ["test_a.py"]), (8, []), (13, ["test_b.py"])])
def test_a_change_in_a_function_is_tried_where_its_statement_runs(root, line, tests):
    """A condition of three lines is one statement; what stands below it is another."""
    found = reach(root, {str(MODULE): [1, 4, 5, 9]}, {str(MODULE): [1, 4, 12, 13]})

    assert able(found, line) == tests


def test_a_clause_is_tried_where_what_it_belongs_to_runs(root):
    """Which errors are caught shows where one is raised, so wherever the `try` runs."""
    (root / MODULE).write_text(TRIES)
    found = reach(root, {str(MODULE): [1, 2, 3]}, {str(MODULE): [1]})

    assert able(found, 4) == ["test_a.py"]


def test_a_constant_is_tried_where_any_function_runs_that_may_know_it(root):
    """Of its module, or of one that imports from it; importing alone shows nothing."""
    found = reach(root, {str(MODULE): [1, 4, 12]}, {str(MODULE): [1, 4, 12], "rebalancer/uses.py": [1, 4, 5]})

    assert able(found, 1) == ["test_b.py"]


def test_what_is_not_known_counts_as_run(root):
    """The lines of another process, and those of a module that was edited since."""
    lines = {str(MODULE): [1, 4, 12]}

    assert able(reach(root, lines, lines, processes=True), 13) == ["test_a.py"]
    (root / MODULE).write_text(FITS + "\n")
    assert able(Reach(root / "kept.json", root), 13) == [*TESTS]


def test_a_file_of_tests_is_measured_again_after_it_was_edited(root):
    found = reach(root, {}, {})
    (root / "test_b.py").write_text("# another")

    assert found.missing(TESTS) == ["test_b.py"]
