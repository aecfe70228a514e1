"""The README's pictures show what the program prints."""

import re

import pytest

from tests.terminal.pictures import PICTURES, ROOT


@pytest.mark.parametrize("picture", PICTURES, ids=lambda each: each.name)
def test_a_picture_is_what_the_program_prints(picture):
    assert picture.drawn() == picture.path.read_text()


def test_the_readme_shows_each_picture():
    shown = re.findall(r"\]\(docs/(terminal-[a-z]+)\.svg\)", (ROOT / "README.md").read_text())

    assert sorted(shown) == sorted(each.name for each in PICTURES)
