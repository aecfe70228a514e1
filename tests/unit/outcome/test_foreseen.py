"""Replacements beside what the report foresaw of them."""

import json

import pytest

from tests.outcome.foreseen import as_foreseen


def report(*evictions):
    return json.dumps({"evictions": [{"name": name, "destination": there} for name, there in evictions]})


def test_a_replacement_counts_once_and_for_its_own_owner():
    """Of two pods of `a` with one node foreseen, one came there; `b`'s came to one of two nodes."""
    told = report(
        ("a-1", {"nodes": ["n1"]}), ("a-2", {"nodes": ["n1"]}), ("b-1", {"nodes": ["n1", "n2"]}), ("c-1", None)
    )
    places = {"a-3": "n1", "a-4": "n2", "b-3": "n2", "c-3": "n1", "old-1": "n1"}

    assert as_foreseen(told, places, ["a-3", "a-4", "b-3", "c-3"]) == (2, 3)


def test_small_sets_are_served_first():
    """The wide one takes what is left."""
    told = report(("a-1", {"nodes": ["n1", "n2"]}), ("a-2", {"nodes": ["n1"]}))

    assert as_foreseen(told, {"a-3": "n1", "a-4": "n2"}, ["a-3", "a-4"]) == (2, 2)


@pytest.mark.parametrize("said", ["", "done: 3 pods", "[]", "{}"])
def test_a_program_that_says_nothing_of_it_foresees_nothing(said):
    """As one that failed, and another program than ours."""
    assert as_foreseen(said, {"a-3": "n1"}, ["a-3"]) == (0, 0)
