"""A misspelt word is answered with the one that was meant."""

import pytest

from rebalancer.policy.findings import did_you_mean

STATES = ("Running", "Pending", "CrashLoopBackOff")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("Runing", "Running"),
        ("RUNNING", "Running"),
        ("crashloopbackoff", "CrashLoopBackOff"),
        ("CrashLoopBackoffs", "CrashLoopBackOff"),
    ],
)
def test_the_nearest_word_is_suggested_whatever_its_case(word, meant):
    """Wrong letters and wrong case."""
    assert did_you_mean(word, STATES) == f"; did you mean {meant!r}?"


def test_few_words_are_all_named_where_none_is_near():
    """So that the reader need not look them up."""
    assert did_you_mean("x", STATES) == "; known are Running, Pending, CrashLoopBackOff"


def test_many_words_or_none_are_not_named():
    """A message stays a line."""
    assert did_you_mean("x", (f"word{number}" for number in range(50))) == ""
    assert did_you_mean("x", ()) == ""
