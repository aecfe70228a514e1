"""Foreign text, shown."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.untrusted.printable import printable, printable_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("web-0", "web-0"),
        ("größer als 5 µs", "größer als 5 µs"),
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("a\u2028b\u2029c\x85d", "a\\u2028b\\u2029c\\x85d"),
        ("\u202egpj.exe\u2066", "\\u202egpj.exe\\u2066"),
        ("a\u200bb\ufeffc", "a\\u200bb\\ufeffc"),
        ("\U000e0041", "\\U000e0041"),
        ("\udcff", "\\udcff"),
        ("http://me:secret@host/x and https://you@there", "http://host/x and https://there"),
        ("mail me@home", "mail me@home"),
    ],
)
def test_what_is_not_printable_is_an_escape(text, shown):
    """Controls, separators, marks of direction, what has no width; and URLs lose their userinfo."""
    assert printable(text) == shown


@given(st.text())
def test_all_texts_become_one_visible_line(text):
    shown = printable(text)

    assert shown.isprintable()
    assert len(shown.splitlines()) <= 1
    assert not {unicodedata.category(each) for each in shown} & {"Cc", "Cf", "Zl", "Zp", "Cs"}


def test_a_long_text_is_cut():
    """A name of 10 MB is not a reason to print 10 MB."""
    assert printable("a" * 10_000_000, 5) == "aaaaa…"
    assert len(printable("\x00" * 10_000_000)) < 50_000


def test_no_part_of_a_password_is_left_where_a_text_is_cut():
    """Userinfo goes first."""
    assert printable("http://me:secret@host", 14) == "http://host"


def test_lines_of_our_own_stay_lines():
    assert printable_lines("two:\n  a\x1b\n  b\u2028") == "two:\n  a\\x1b\n  b\\u2028"
