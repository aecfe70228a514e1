"""The key `steering`: absent by default, and checked as the policy is read."""

from datetime import timedelta

import pytest

from rebalancer.policy.moving import Steering, avoid_keys
from tests.unit.policy.reading import HEAD, load, problems, rows


@pytest.mark.parametrize(
    ("text", "steering"),
    [
        ("", None),
        ("steering: {}", Steering(key="kube-rebalancer/avoid", settle=timedelta(seconds=60), min_gain=1.5)),
        (
            "steering: {key: example.com/later, settle: 90s, minGain: 0.5}",
            Steering(key="example.com/later", settle=timedelta(seconds=90), min_gain=0.5),
        ),
    ],
)
def test_nothing_is_steered_unless_the_policy_says_so(text, steering):
    assert load(HEAD + text).policy.steering == steering


@pytest.mark.parametrize(
    ("fields", "problem"),
    rows(f"""
    key: '' | steering.key: '' cannot be the key of a taint
    key: No_DNS/avoid | steering.key: 'No_DNS/avoid' cannot be the key of a taint: 'No_DNS', before the slash
    key: {"a" * 59} | at most 58 letters
    settle: 0s | steering.settle: settle has to be between 1s and 1h
    settle: 60 | steering.settle: 60 is not a duration: write a number with a unit, like 60s or 60m
    minGain: -1 | steering.minGain: -1
    minGain: '2' | steering.minGain: a number is expected, not the text '2'; write 2 without quotes
    """),
)
def test_what_cannot_work_is_an_error(fields, problem):
    assert problem in problems(HEAD + f"steering: {{{fields}}}")[0]


def test_the_two_taints_of_a_node_have_a_key_each():
    assert avoid_keys("a/b") == ("a/b", "a/b-more")
