"""The form of a table of words: for each code a template, or a function of the figures."""

from collections.abc import Callable, Mapping
from typing import Any

from rebalancer.eviction.causes import Code

Figures = Mapping[str, Any]
Words = Callable[[Figures], str]


def words(table: Mapping[Code, str | Words]) -> dict[Code, Words]:
    """Return the table with functions only; a template names figures in braces."""
    return {code: each.format_map if isinstance(each, str) else each for code, each in table.items()}
