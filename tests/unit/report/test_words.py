"""Text for people is made of causes, here and nowhere else."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.engine.ledger import Notice
from rebalancer.eviction.causes import Code, cause
from rebalancer.report.layout import age_text, ages_text
from rebalancer.report.words import GOES, NODES, NOTICES, STAYS, notice_text, text

PRODUCT = Path(__file__).parents[3]
DAY = 86400


def test_no_code_has_words_in_two_tables() -> None:
    """The same cause would read in two ways."""
    tables = [GOES, STAYS, NODES, NOTICES]

    assert sum(map(len, tables)) == len(set().union(*tables))


AGES = {0: "0s", 59.4: "59s", 59.6: "1m", 90: "1m30s", 5400: "1h30m", 86395: "1d", 3455964: "40d", DAY + 7259: "1d2h"}


@pytest.mark.parametrize(("seconds", "shown"), AGES.items())
def test_ages_are_told_in_their_greatest_units(seconds: float, shown: str) -> None:
    """Two of them, the last one rounded: 3455964 s are a minute less than forty days."""
    assert age_text(seconds) == shown


@given(st.integers(0, 400 * DAY), st.integers(0, 400 * DAY))
def test_different_ages_look_different(age: int, bound: int) -> None:
    left, right = ages_text(age, bound)

    assert (left == right) is (age == bound)


@pytest.mark.parametrize(
    ("code", "figures", "words"),
    [
        (Code.MIN_POD_AGE, {"age_seconds": 3595, "minimum_seconds": 3600}, "59m55s ago, less than 1h"),
        (Code.NODE_LIMIT, {"used": 3, "limit": 3, "node": "n"}, "3 of 3 evictions from n are used"),
        (Code.PDB, {"message": "the server says no"}, "the server says no"),
        (Code.PDB, {"pdbs": ["a", "b"], "more": 2}, "more than one PDB selects it (a, b and 2 more)"),
        (Code.NEWCOMER, {"age_seconds": 90}, "started 1m30s ago"),
        (Code.NOT_WORTH, {"gain": 1.26, "price": 33.0}, "gains 1.3 point hours, and moving it costs 33"),
        (Code.NO_DESTINATION, {"likely": "n5", "harm": {"code": "IdleNode"}}, "choose n5, which is to be emptied, too"),
        (Code.NODE_FIT, {"nodes": 0, "obstacles": []}, "there is no other node"),
        (Code.NO_USAGE, {"used": 0, "keeps_node": "n1"}, "it uses nothing; it keeps n1, which is emptied"),
    ],
)
def test_figures_stand_in_the_words(code: Code, figures: dict[str, Any], words: str) -> None:
    assert words in text(cause(code, **figures))


def test_a_warning_says_whose_it_is() -> None:
    """The engine's own have no name before them."""
    found = cause(Code.MORE_STAY_OVER, nodes=2)

    assert notice_text(Notice(found, "a/B")) == "a/B: 2 more nodes stay over, and nothing more may go that helps"
    assert notice_text(Notice(found)).startswith("2 more")


def test_the_words_of_causes_are_made_nowhere_else() -> None:
    """No other module gives a verdict a sentence, or looks for one."""
    sources = [*(PRODUCT / "rebalancer").rglob("*.py"), *(PRODUCT / "strategies").glob("*.py")]
    sentences = re.compile(r'\b(?:Refused|refused)\(\s*f?"|\.by == "')

    assert [str(path) for path in sources if sentences.search(path.read_text())] == []
