"""The judge judged: a wrong set of evicted pods must not pass."""

import pytest

from tests.conformance.answers import evictions
from tests.conformance.policies import defaults

_EXACT = {"evicted_count": 2, "distinct_evicted_count": 2, "exact": ["a/1", "a/2"]}
_ANY_TWO = {"evicted_count": 2, "distinct_evicted_count": 2, "include": ["a/1"], "subset_of": ["a/1", "a/2", "a/3"]}
_RELAXED = {"distinct_evicted_count": 1, "exact": ["a/3"], "relaxed": {"include": [], "subset_of": ["a/2", "a/3"]}}


@pytest.mark.parametrize(
    ("evicted", "wanted"),
    [
        (["a/1"], _EXACT),
        (["a/1", "a/3"], _EXACT),
        (["a/1", "a/1", "a/2"], _EXACT),
        (["a/2", "a/3"], _ANY_TWO),
        (["a/1", "a/4"], _ANY_TWO),
        (["a/1"], _RELAXED),
        (["a/2", "a/3"], _RELAXED),
        ([], {"evicted_count_min": 1, "subset_of": ["a/1"]}),
        (["a/1", "a/2"], {"evicted_count_max": 1, "subset_of": ["a/1", "a/2"]}),
    ],
)
def test_contradiction(evicted, wanted):
    assert not evictions(evicted, wanted).agrees


@pytest.mark.parametrize(
    "wrong", [{"numberOfNodes": 11}, {"useDeviationThresholds": False}, {"evictionLimits": {"node": 1}}]
)
def test_defaults_are_compared_beside_what_is_refused(wrong):
    """Arguments that are refused for one value are still compared in all others."""
    args = {"useDeviationThresholds": True, "thresholds": {"memory": 120}, "targetThresholds": {}, "numberOfNodes": 10}

    assert defaults({"plugin": "LowNodeUtilization", "args": args, "expected_args": args}).agrees
    assert not defaults({"plugin": "LowNodeUtilization", "args": args, "expected_args": args | wrong}).agrees
