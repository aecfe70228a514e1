"""What comes along, and under which licences."""

import importlib.util
import re
import shutil
from pathlib import Path

import pytest

from tests.commands import ROOT, run

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))

_spec = importlib.util.spec_from_file_location("third_party", ROOT / "release/third_party.py")
assert _spec
assert _spec.loader
third_party = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(third_party)


def test_the_page_is_fresh_and_no_licence_forbids_to_pass_the_program_on():
    """`make third-party` writes it."""
    found = list(third_party.rows())

    assert third_party.PAGE.read_text() == third_party.page(found)
    assert [name for name, _, said in found if not third_party.FREE.search(said)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_holds_no_secret_and_asks_for_no_more_than_it_needs(path):
    """Permissions are named, and no expression of the event reaches a shell."""
    text = path.read_text()

    assert re.search(r"^permissions:", text, re.MULTILINE)
    assert "secrets." not in text
    assert not re.search(r"run:.*\$\{\{ *github\.event", text)


def test_the_linter_finds_nothing_in_the_workflows():
    """actionlint, where it is at hand (`go install` has it)."""
    actionlint = shutil.which("actionlint") or shutil.which("actionlint", path=str(Path.home() / "go/bin"))
    if not actionlint:
        pytest.skip("there is no actionlint")

    assert run(actionlint, *WORKFLOWS).stdout == ""
