"""The README's pictures show what the program prints."""

import re

import pytest

from tests.terminal.pictures import PICTURES, ROOT, Picture


@pytest.mark.parametrize("picture", PICTURES, ids=lambda each: each.name)
def test_a_picture_is_what_the_program_prints(picture: Picture) -> None:
    """To the letter and the colour; `make pictures` draws them anew."""
    assert picture.drawn() == picture.path.read_text()


@pytest.mark.parametrize("picture", PICTURES, ids=lambda each: each.name)
def test_a_picture_keeps_its_columns(picture: Picture) -> None:
    """Viewers that take blanks at the beginning of a text away are told not to."""
    texts = re.findall(r"<text [^>]*>", picture.path.read_text())

    assert texts
    assert all('xml:space="preserve"' in text for text in texts)


def test_the_readme_shows_each_picture() -> None:
    """And no other one of the terminal."""
    shown = re.findall(r"\]\(docs/(terminal-[a-z]+)\.svg\)", (ROOT / "README.md").read_text())

    assert sorted(shown) == sorted(each.name for each in PICTURES)
