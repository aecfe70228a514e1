"""Arguments are decoded as the descheduler decodes them, those of DefaultEvictor among them."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from rebalancer.policy.arguments import PodArgs, parse_duration
from rebalancer.policy.evictor import DefaultEvictorArgs
from tests.make import pod
from tests.unit.policy.reading import PLUGINS


@pytest.mark.parametrize("name", ["cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu"])
def test_resources_that_thresholds_may_name(name: str) -> None:
    assert PLUGINS["HighNodeUtilization"].args.model_validate({"thresholds": {name: 20.5}}).thresholds == {name: 20.5}


@pytest.mark.parametrize(
    ("args", "selects"),
    [
        ({}, True),
        ({"namespaces": {"include": ["a"]}}, True),
        ({"namespaces": {"include": ["b"]}}, False),
        ({"namespaces": {"exclude": ["a"]}}, False),
        ({"namespaces": {"exclude": ["b"]}}, True),
        ({"labelSelector": {}}, True),
        ({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}, True),
        ({"labelSelector": {"matchExpressions": [{"key": "other", "operator": "Exists"}]}}, False),
    ],
)
def test_pods_are_narrowed_by_namespace_and_labels(args: dict[str, Any], selects: bool) -> None:
    """Only some namespaces, or all but some; an empty selector matches everything."""
    assert PodArgs.model_validate(args).selects(pod("p", namespace="a", labels={"app": ""})) is selects


DEFAULTS = {"PodsWithLocalStorage", "SystemCriticalPods", "FailedBarePods", "DaemonSetPods"}
DURATIONS = {"90s": 90, "1h30m": 5400, "1.5h": 5400, ".5m": 30, "100ms": 0.1, "0": 0, "0s": 0, "1h1m1s1ms": 3661.001}
DURATIONS |= {"2562047h47m16s": 2**63 // 10**9}


def protected(**protections: Any) -> dict[str, Any]:
    return {"podProtections": protections}


CLASS_WITHOUT_NAME = {"PodsWithPVC": {"protectedStorageClasses": [{}]}}


@pytest.mark.parametrize(
    ("args", "removed", "added"),
    [
        ({}, set(), set()),
        (protected(defaultDisabled=["DaemonSetPods"]), {"DaemonSetPods"}, set()),
        (protected(extraEnabled=["PodsWithPVC"]), set(), {"PodsWithPVC"}),
        # Deprecated switches.
        ({"evictDaemonSetPods": True, "ignorePvcPods": True}, {"DaemonSetPods"}, {"PodsWithPVC"}),
        ({"evictLocalStoragePods": True}, {"PodsWithLocalStorage"}, set()),
        ({"evictSystemCriticalPods": True}, {"SystemCriticalPods"}, set()),
        ({"evictFailedBarePods": True, "ignorePodsWithoutPDB": True}, {"FailedBarePods"}, {"PodsWithoutPDB"}),
        # Deprecated switches go with config alone, where a class may lack its name.
        ({"ignorePvcPods": True} | protected(config=CLASS_WITHOUT_NAME), set(), {"PodsWithPVC"}),
        # An explicit false is not a deprecated switch.
        ({"evictDaemonSetPods": False} | protected(extraEnabled=["PodsWithoutPDB"]), set(), {"PodsWithoutPDB"}),
    ],
)
def test_effective_protections(args: dict[str, Any], removed: set[str], added: set[str]) -> None:
    """Defaults less what is disabled, and what is enabled beside them."""
    assert DefaultEvictorArgs.model_validate(args).protections() == (DEFAULTS - removed) | added


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"priorityThreshold": {"value": 1, "name": "x"}}, "either value or name"),
        ({"priorityThreshold": {"value": 2_000_000_001}}, "at most"),
        ({"noEvictionPolicy": "Always"}, "Preferred"),
        ({"evictDaemonSetPods": True} | protected(extraEnabled=["PodsWithPVC"]), "deprecated evictDaemonSetPods"),
        (protected(extraEnabled=["DaemonSetPods"]), "is not one of PodsWithPVC"),
        (protected(defaultDisabled=["PodsWithPVC"]), "is not one of PodsWithLocal"),
        (protected(extraEnabled=["PodsWithPVC"] * 2), "listed twice"),
        (protected(extraEnabled=["PodsWithPVC"], config=CLASS_WITHOUT_NAME), "needs a name"),
        ({"minReplicas": -1}, "greater than or equal to 0"),
        ({"minPodAge": 5}, "is not a duration"),
        ({"minPodAge": "9" * 100_000 + "s"}, "is too long a duration"),
        ({"nodeSelector": "a b"}, "is not a label selector"),
        ({"labelSelector": {"matchLabels": {"a b": "c"}}}, "not a label key"),
    ],
)
def test_bad_arguments_are_refused(args: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        DefaultEvictorArgs.model_validate(args)


def test_durations() -> None:
    """As Go writes them, and no longer than it can count: 292 years."""
    found = {text: parse_duration(text) / timedelta(seconds=1) for text in DURATIONS}

    assert found == DURATIONS


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["", "5", "1d", "-5s", "1h 30m", "s", "1.2.3s", "1e3s", None, 5], "is not a duration"),
        (["2562047h47m17s", "999999999h", f"{10**400}h"], "is too long a duration"),
    ],
)
def test_other_durations_are_refused(texts: list[object], message: str) -> None:
    """Those that Go cannot count too: they were tracebacks where clocks and locks met them."""
    for text in texts:
        with pytest.raises(ValueError, match=message):
            parse_duration(text)
