"""Text on a terminal: names stay whole at any width."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from rebalancer.report.layout import bar, hanging, listed, number_text

NAMES = st.text(st.sampled_from("abcxyz-0123"), min_size=1, max_size=60)
PROSE = st.lists(NAMES, max_size=12).map(" ".join)


def lines_of(*arguments):
    return [line for lines in hanging(*arguments) for line in lines]


@given(st.lists(st.tuples(NAMES, NAMES, PROSE), min_size=1, max_size=6), st.integers(20, 200), st.integers(0, 6))
def test_no_word_is_ever_broken_or_lost(rows, width, indent):
    """Whatever the width, the words come out as they went in, in their order."""
    lines = lines_of([row[:2] for row in rows], [row[2] for row in rows], width, indent)

    assert " ".join(lines).split() == " ".join(" ".join(row) for row in rows).split()


@given(st.lists(st.tuples(NAMES, PROSE), min_size=1, max_size=6), st.integers(40, 200))
def test_no_line_is_wider_than_the_terminal_but_for_a_single_long_name(rows, width):
    """Prose wraps; what is wider than the terminal is one word."""
    lines = lines_of([row[:1] for row in rows], [row[1] for row in rows], width)

    assert all(cell_len(line) <= width or len(line.split()) == 1 for line in lines)


def test_prose_stands_beside_names_where_there_is_room():
    """The next lines of a text begin where the first one does."""
    lines = lines_of([("web-1", "node-4"), ("mailer-10", "node-11")], ["too many restarts " * 3, "old"], 60)

    assert lines == [
        "web-1      node-4   too many restarts too many restarts too",
        "                    many restarts",
        "mailer-10  node-11  old",
    ]


def test_prose_stands_below_names_where_there_is_none():
    lines = lines_of([("a-pod-with-a-rather-long-name-0", "node-4")], ["140 restarts >= 100"], 60)

    assert lines == ["a-pod-with-a-rather-long-name-0  node-4", "  140 restarts >= 100"]


def test_names_of_wide_characters_are_measured_as_a_terminal_does():
    lines = lines_of([("節点",), ("abcd",)], ["x", "y"], 60)

    assert lines == ["節点  x", "abcd  y"]


def test_a_bar_is_full_at_a_hundred_percent():
    """And shows a little of a little; more than everything is not wider."""
    assert [bar(percent, 4) for percent in (0, 1, 50, 100, 250)] == ["····", "█···", "██··", "████", "████"]


def test_a_list_names_the_first_and_counts_the_others():
    assert listed(["a", "b", "c", "d"], 3) == "a, b, c and 1 more"
    assert listed(["a", "b"], 3) == "a, b"


@pytest.mark.parametrize(("number", "text"), [(6.14, "6.1"), (6.0, "6"), (0.04, "0"), (33, "33")])
def test_numbers_have_one_decimal_at_most(number, text):
    """And none if it is nought."""
    assert number_text(number) == text
