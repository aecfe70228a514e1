"""Arguments that mean nothing or contradict themselves, by the descheduler's rules and by ours."""

import pytest

from strategies import HighNodeUtilization, LowNodeUtilization, PodLifeTime, RemovePodsViolatingNodeAffinity
from tests.measured import RELIEF

CONTENTION = {"thresholds": {"contention": 5}, "targetThresholds": {"contention": 10}}
ACROSS = {**RELIEF, "pools": {"label": "l", "moves": "across"}}
COMPACTION = {"selection": "compaction"}
LOW = [
    ({"thresholds": {}}, "give at least one resource"),
    ({"thresholds": {"cpus": 20}}, "'cpus' is not a resource"),
    ({"thresholds": {"cpu": 20, "memory": 20}}, "must name the same resources; only one has memory"),
    ({"thresholds": {"cpu": 60}}, "the thresholds of cpu are greater than their targetThresholds"),
    (CONTENTION, "since it is measured"),
    (CONTENTION | {"metricsUtilization": RELIEF, "useDeviationThresholds": True}, "no mean worth keeping to"),
    ({"metricsUtilization": ACROSS}, "does nothing where thresholds are not distances"),
]
HIGH = [
    ({"thresholds": {}}, "give at least one resource"),
    ({"evictionModes": ["Invalid"]}, "OnlyThresholdingResources"),
    ({"evictableNamespaces": {"include": ["a"]}}, "only exclude can be given"),
    ({"destinationThresholds": {"cpu": 70}}, "goes with metricsUtilization and its selection: relief only"),
    ({"destinationThresholds": {"cpu": 10}, "metricsUtilization": RELIEF}, "cpu are greater than their destin"),
    ({"keepFree": {"cpu": 10}}, "keepFree and nodeGroups go with selection: compaction only"),
    ({"nodeGroups": {"label": "pool"}}, "keepFree and nodeGroups go with selection: compaction only"),
    (COMPACTION | {"metricsUtilization": RELIEF}, "exclude each other"),
    ({"metricsUtilization": {**RELIEF, "pools": {"label": "pool"}}}, "LowNodeUtilization only"),
    (COMPACTION | {"destinationThresholds": {"cpu": 10}}, "cpu are greater than their destination"),
]
LIFE_TIME = [
    ({}, "give maxPodLifeTimeSeconds, states"),
    ({"ownerKinds": {"include": ["Job"]}}, "give maxPodLifeTimeSeconds"),
    ({"states": ["running"]}, "'Running', 'Pending'"),
    ({"conditions": [{}]}, "a condition needs"),
    ({"conditions": [{"type": "", "reason": ""}]}, "a condition needs"),
]
TYPES = [({}, "nodeAffinityType must be given: req"), ({"nodeAffinityType": []}, "nodeAffinityType must be given: req")]


@pytest.mark.parametrize(
    ("strategy", "args", "message"),
    [
        *((LowNodeUtilization, {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}, **a}, b) for a, b in LOW),
        *((HighNodeUtilization, {"thresholds": {"cpu": 20}, **args}, message) for args, message in HIGH),
        *((PodLifeTime, *row) for row in LIFE_TIME),
        *((RemovePodsViolatingNodeAffinity, *row) for row in TYPES),
    ],
)
def test_bad_arguments_are_told(strategy, args, message):
    with pytest.raises(ValueError, match=message):
        strategy.Args.model_validate(args)
