"""The policies of the outcome, and what another program gets of them."""

import pytest

from tests.outcome.policies import Bounds, bounds_of, in_reference_words, read_policy
from tests.outcome.scenarios import POLICIES, SCENARIOS


def test_bounds_are_the_policies_own():
    """What the tables call over target is what the policy calls so."""
    assert bounds_of(read_policy(POLICIES / "half.yaml")) == Bounds(
        {"cpu": 35, "memory": 35}, {"cpu": 55, "memory": 55}, deviation=False
    )
    assert bounds_of(read_policy(POLICIES / "deviation.yaml")).deviation


BY_USAGE = [
    scenario for scenario in SCENARIOS.values() if not scenario.name.startswith("pack") and not scenario.load_aware
]


@pytest.mark.parametrize("scenario", BY_USAGE, ids=lambda scenario: scenario.name)
def test_the_reference_gets_the_same_policy_without_our_keys(scenario):
    """Only the source stays of metricsUtilization, everything else stays as it is."""
    policy = read_policy(scenario.policy)
    plain = in_reference_words(policy)

    (ours,) = (entry["args"] for entry in policy["profiles"][0]["pluginConfig"] if "thresholds" in entry["args"])
    (theirs,) = (entry["args"] for entry in plain["profiles"][0]["pluginConfig"] if "thresholds" in entry["args"])
    assert ours["metricsUtilization"] == {"source": "KubernetesMetrics", "selection": "relief", "rest": "2m"}
    assert theirs == {**ours, "metricsUtilization": {"source": "KubernetesMetrics"}}
    assert plain["metricsProviders"] == policy["metricsProviders"]


def test_to_empty_nodes_by_usage_the_reference_gets_its_source_too():
    """And no more."""
    plain = in_reference_words(read_policy(SCENARIOS["pack-usage"].policy))

    assert plain["profiles"][0]["pluginConfig"][1]["args"] == {
        "thresholds": {"cpu": 21, "memory": 21},
        "metricsUtilization": {"source": "KubernetesMetrics"},
    }


def test_to_empty_nodes_the_reference_gets_thresholds_alone():
    """By requests, and without steering."""
    policy = read_policy(SCENARIOS["pack"].policy)
    plain = in_reference_words(policy)

    assert "steering" not in plain
    assert plain["profiles"][0]["pluginConfig"][1]["args"] == {"thresholds": {"cpu": 20, "memory": 20}}
    assert bounds_of(policy).high == {"cpu": 100, "memory": 100}
