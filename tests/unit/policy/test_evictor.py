"""DefaultEvictor's arguments as policies spell them."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from rebalancer.policy.arguments import parse_duration
from rebalancer.policy.evictor import DefaultEvictorArgs

DEFAULTS = {"PodsWithLocalStorage", "SystemCriticalPods", "FailedBarePods", "DaemonSetPods"}


@pytest.mark.parametrize(
    ("args", "removed", "added"),
    [
        pytest.param({}, set(), set(), id="the defaults"),
        pytest.param(
            {"podProtections": {"defaultDisabled": ["DaemonSetPods"]}}, {"DaemonSetPods"}, set(), id="one off"
        ),
        pytest.param({"podProtections": {"extraEnabled": ["PodsWithPVC"]}}, set(), {"PodsWithPVC"}, id="one more"),
        pytest.param(
            {"evictDaemonSetPods": True, "ignorePvcPods": True},
            {"DaemonSetPods"},
            {"PodsWithPVC"},
            id="deprecated switches",
        ),
        pytest.param(
            dict.fromkeys(("evictLocalStoragePods", "evictSystemCriticalPods", "evictFailedBarePods"), True)
            | {"ignorePodsWithoutPDB": True},
            DEFAULTS - {"DaemonSetPods"},
            {"PodsWithoutPDB"},
            id="the other deprecated switches",
        ),
        pytest.param(
            {"ignorePvcPods": True, "podProtections": {"config": {"PodsWithPVC": {"protectedStorageClasses": [{}]}}}},
            set(),
            {"PodsWithPVC"},
            id="deprecated switches go with config alone, where a class may lack its name",
        ),
        pytest.param(
            {"evictDaemonSetPods": False, "podProtections": {"extraEnabled": ["PodsWithoutPDB"]}},
            set(),
            {"PodsWithoutPDB"},
            id="an explicit false is not a deprecated switch",
        ),
    ],
)
def test_effective_protections(args: dict[str, Any], removed: set[str], added: set[str]) -> None:
    """Defaults less what is disabled, and what is enabled beside them."""
    assert DefaultEvictorArgs.model_validate(args).protections() == (DEFAULTS - removed) | added


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        pytest.param({"priorityThreshold": {"value": 1, "name": "x"}}, "either value or name", id="two thresholds"),
        pytest.param({"priorityThreshold": {"value": 2_000_000_001}}, "at most", id="a threshold past critical"),
        pytest.param({"noEvictionPolicy": "Always"}, "Preferred", id="an unknown policy"),
        pytest.param(
            {"evictDaemonSetPods": True, "podProtections": {"extraEnabled": ["PodsWithPVC"]}},
            "deprecated evictDaemonSetPods",
            id="both styles",
        ),
        pytest.param(
            {"podProtections": {"extraEnabled": ["DaemonSetPods"]}}, "is not one of PodsWithPVC", id="wrong list"
        ),
        pytest.param(
            {"podProtections": {"defaultDisabled": ["PodsWithPVC"]}}, "is not one of PodsWithLocal", id="the other"
        ),
        pytest.param({"podProtections": {"extraEnabled": ["PodsWithPVC"] * 2}}, "listed twice", id="twice"),
        pytest.param(
            {
                "podProtections": {
                    "extraEnabled": ["PodsWithPVC"],
                    "config": {"PodsWithPVC": {"protectedStorageClasses": [{"name": ""}]}},
                }
            },
            "needs a name",
            id="a class without a name",
        ),
        pytest.param({"minReplicas": -1}, "greater than or equal to 0", id="a negative number"),
        pytest.param({"minPodAge": 5}, "is not a duration", id="a duration without a unit"),
        pytest.param({"minPodAge": "9" * 100_000}, "is not a duration", id="digits that take long to read"),
        pytest.param({"nodeSelector": "a b"}, "is not a label selector", id="a bad node selector"),
        pytest.param({"labelSelector": {"matchLabels": {"a b": "c"}}}, "not a label key", id="a bad label selector"),
        pytest.param({"nodefit": True}, "Extra inputs", id="a key in the wrong case"),
    ],
)
def test_bad_arguments_are_refused(args: dict[str, Any], problem: str) -> None:
    """The message says what is wrong."""
    with pytest.raises(ValidationError, match=problem):
        DefaultEvictorArgs.model_validate(args)


def test_null_is_absent() -> None:
    """As in the descheduler."""
    nulls = dict.fromkeys(("nodeFit", "minPodAge", "priorityThreshold", "labelSelector", "podProtections"))

    assert DefaultEvictorArgs.model_validate(nulls) == DefaultEvictorArgs()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("1h30m", 5400),
        ("1.5h", 5400),
        (".5m", 30),
        ("100ms", 0.1),
        ("0", 0),
        ("0s", 0),
        ("1h1m1s1ms", 3661.001),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    """As Go writes them."""
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "5", "1d", "-5s", "1h 30m", "s", "1.2.3s", "1e3s", None, 5, "9" * 400 + "h"])
def test_other_durations_are_refused(text: object) -> None:
    """Days, bare numbers and negative ones among them."""
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


def test_a_duration_is_no_longer_than_go_can_count():
    """292 years: longer ones were tracebacks where clocks and locks met them."""
    assert parse_duration("2562047h47m16s") == timedelta(seconds=2**63 // 10**9)
    for longer in ("2562047h47m17s", "999999999h", f"{10**400}h"):
        with pytest.raises(ValueError, match="is too long a duration"):
            parse_duration(longer)
