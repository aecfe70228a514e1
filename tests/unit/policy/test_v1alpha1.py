"""The older form is converted: each enabled strategy becomes a profile of its own."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from rebalancer.policy.arguments import Args
from rebalancer.policy.evictor import DefaultEvictorArgs
from tests.make import selector
from tests.unit.policy.reading import OLD_HEAD, PLUGINS, load, problems, rows

DEPRECATED = (
    "line 1, apiVersion: descheduler/v1alpha1 is deprecated; it is read as descheduler/v1alpha2, "
    "each strategy in a profile of its own"
)
#: Strategies, their params, and the arguments that these become.
CONVERTED = """
- - RemovePodsViolatingNodeTaints
  - {includePreferNoSchedule: true, excludedTaints: [a], labelSelector: {matchLabels: {a: b}}}
  - {includePreferNoSchedule: true, excludedTaints: [a], labelSelector: {matchLabels: {a: b}}}
- [RemovePodsViolatingNodeTaints, {includedTaints: [b]}, {includedTaints: [b]}]
- - RemoveFailedPods
  - namespaces: {exclude: [a]}
    failedPods: {reasons: [r], excludeOwnerKinds: [Job], minPodLifetimeSeconds: 9, includingInitContainers: true}
  - namespaces: {exclude: [a]}
    reasons: [r]
    excludeOwnerKinds: [Job]
    minPodLifetimeSeconds: 9
    includingInitContainers: true
- [RemoveFailedPods, {}, {minPodLifetimeSeconds: 3600}]
- [RemoveDuplicates, {includeSoftConstraints: false, nodeAffinityType: ~}, {}]
- - RemovePodsViolatingNodeAffinity
  - {nodeAffinityType: [requiredDuringSchedulingIgnoredDuringExecution]}
  - {nodeAffinityType: [requiredDuringSchedulingIgnoredDuringExecution]}
- [RemovePodsViolatingInterPodAntiAffinity, {namespaces: {include: [a]}}, {namespaces: {include: [a]}}]
- - RemovePodsHavingTooManyRestarts
  - podsHavingTooManyRestarts: {podRestartThreshold: 3, includingInitContainers: true}
  - {podRestartThreshold: 3, includingInitContainers: true}
- - PodLifeTime
  - podLifeTime: {maxPodLifeTimeSeconds: 5, podStatusPhases: [Running], states: [Pending]}
  - {maxPodLifeTimeSeconds: 5, states: [Running, Pending]}
- - RemoveDuplicates
  - {namespaces: {include: [a]}, removeDuplicates: {excludeOwnerKinds: [Job]}}
  - {namespaces: {include: [a]}, excludeOwnerKinds: [Job]}
- - RemovePodsViolatingTopologySpreadConstraint
  - {}
  - {constraints: [DoNotSchedule], topologyBalanceNodeFit: true}
- - RemovePodsViolatingTopologySpreadConstraint
  - {includeSoftConstraints: true}
  - {constraints: [DoNotSchedule, ScheduleAnyway], topologyBalanceNodeFit: true}
- - HighNodeUtilization
  - {namespaces: {exclude: [a]}, nodeResourceUtilizationThresholds: {thresholds: {cpu: 20}, numberOfNodes: 2}}
  - {evictableNamespaces: {exclude: [a]}, thresholds: {cpu: 20}, numberOfNodes: 2}
- - LowNodeUtilization
  - nodeResourceUtilizationThresholds: &low
      {thresholds: {cpu: 20}, targetThresholds: {cpu: 50}, useDeviationThresholds: true, numberOfNodes: 2}
  - *low
"""


def converted(name: str, params: Mapping[str, Any], top: str = "") -> Mapping[str, Args]:
    """The arguments of the one profile that a strategy with these params becomes."""
    text = f"{OLD_HEAD}{top}strategies: {{{name}: {{enabled: true, params: {json.dumps(params)}}}}}"
    loaded = load(text, strict=True)
    (profile,) = loaded.policy.profiles
    assert profile.name == f"strategy-{name}-profile"
    assert [str(each) for each in loaded.warnings] == [DEPRECATED]
    return profile.args


@pytest.mark.parametrize(("name", "params", "arguments"), yaml.safe_load(CONVERTED))
def test_params_become_arguments(name, params, arguments):
    """Each strategy takes its own params; the taints to include are carried over, which the descheduler forgot."""
    args = converted(name, params)

    assert args[name] == PLUGINS[name].args.model_validate(arguments)
    assert args["DefaultEvictor"] == DefaultEvictorArgs()


@pytest.mark.parametrize(
    ("params", "evictor"),
    [
        ({"nodeFit": True}, {"nodeFit": True}),
        ({"thresholdPriority": 0}, {"priorityThreshold": {"value": 0}}),
        ({"thresholdPriorityClassName": "high"}, {"priorityThreshold": {"name": "high"}}),
        ({"thresholdPriority": 7, "thresholdPriorityClassName": ""}, {"priorityThreshold": {"value": 7}}),
    ],
)
def test_switches_node_fit_and_a_priority_threshold_become_the_evictors(params, evictor):
    top = "evictLocalStoragePods: true\nignorePvcPods: true\nevictDaemonSetPods: false\n"
    switches = {"evictLocalStoragePods": True, "ignorePvcPods": True}

    found = converted("RemoveDuplicates", params, top)["DefaultEvictor"]

    assert found == DefaultEvictorArgs.model_validate({**evictor, **switches})


def test_limits_and_the_selector_stay_and_what_is_not_enabled_is_left_out():
    text = f"""\
{OLD_HEAD}nodeSelector: pool=a
maxNoOfPodsToEvictPerNode: 3
maxNoOfPodsToEvictPerNamespace: 4
strategies:
  LowNodeUtilization: {{enabled: false, params: {{nodeResourceUtilizationThresholds: {{thresholds: bad}}}}}}
  RemoveDuplicates: {{enabled: true}}
  HighNodeUtilization:
  DefaultEvictor: {{}}
"""
    policy = load(text).policy

    assert [(each.deschedule, each.balance) for each in policy.profiles] == [((), ("RemoveDuplicates",))]
    assert (policy.max_per_node, policy.max_per_namespace, policy.max_total) == (3, 4, None)
    assert policy.node_selector == selector(pool="a")


def test_errors_are_placed_in_the_original_document():
    text = f"""\
{OLD_HEAD}maxNoOfPodsToEvictPerNode: "5"
evictLocalStoragePods: 1
strategies:
  PodLifeTime:
    enabled: true
    params:
      podLifeTime:
        podStatusPhases: [Running]
        states:
        - 5
      thresholdPriority: 5
      thresholdPriorityClassName: high
  RemovePodsViolatingNodeAffinity:
    enabled: true
  RemoveDuplicates:
    enabled: "true"
  PodLifetime: {{enabled: false}}
  DefaultEvictor: {{enabled: true}}
"""

    found = problems(text)

    assert [each.partition(": ")[0] for each in found] == [
        "line 3, maxNoOfPodsToEvictPerNode",
        "line 4, evictLocalStoragePods",
        "line 12, strategies.PodLifeTime.params.podLifeTime.states[0]",
        "line 13, strategies.PodLifeTime.params.thresholdPriority",
        "line 15, strategies.RemovePodsViolatingNodeAffinity",
        "line 18, strategies.RemoveDuplicates.enabled",
        "line 19, strategies.PodLifetime",
        "line 20, strategies.DefaultEvictor",
    ]
    assert ": nodeAffinityType must be given" in found[4]
    assert found[6].endswith("no strategy of descheduler/v1alpha1 is called 'PodLifetime'; did you mean 'PodLifeTime'?")


@pytest.mark.parametrize(
    ("strategy", "warning"),
    rows("""
    weight: 1 | weight: weight has no effect, and never had
    param: {} | param: unknown key 'param' has no effect; did you mean 'params'?
    params: {labelSelectr: {}} | params.labelSelectr: unknown key 'labelSelectr' has no effect; did you mean 'labelSel
    params: {states: [Running]} | params.states: unknown key 'states' has no effect; it belongs under podLifeTime
    params: {removeDuplicates: {excludeOwnerKind: [a]}} | params.removeDuplicates.excludeOwnerKind: unknown key 'exclu
    params: {labelSelector: {matchLabels: {}}} | params.labelSelector: RemoveDuplicates does not use labelSelector: it
    """),
)
def test_what_has_no_effect_is_a_warning_and_strictly_an_error(strategy, warning):
    text = OLD_HEAD + f"strategies:\n  RemoveDuplicates: {{enabled: true, {strategy}}}"
    expected = f"line 4, strategies.RemoveDuplicates.{warning}"

    assert str(load(text).warnings[1]).startswith(expected)
    (problem,) = problems(text, strict=True)
    assert problem.startswith(expected)


def test_a_key_of_the_newer_form_is_not_taken_for_another_limit():
    (problem,) = problems(OLD_HEAD + "maxNoOfPodsToEvictTotal: 5\nstrategies: {}", strict=True)

    assert problem.endswith("unknown key 'maxNoOfPodsToEvictTotal' has no effect; it is a key of descheduler/v1alpha2")


def test_node_fit_has_no_effect_on_pod_life_time():
    """The conversion never gave it to that strategy's evictor."""
    params = "{nodeFit: true, podLifeTime: {maxPodLifeTimeSeconds: 5}}"
    loaded = load(OLD_HEAD + f"strategies: {{PodLifeTime: {{enabled: true, params: {params}}}}}")

    assert loaded.policy.profiles[0].args["DefaultEvictor"] == DefaultEvictorArgs()
    assert "PodLifeTime does not use nodeFit" in loaded.warnings[1].message


def test_a_policy_of_strategies_without_a_version_is_told_the_older_one():
    (problem,) = problems("strategies: {RemoveDuplicates: {enabled: true}}")

    assert problem == "line 1: apiVersion is missing; begin with `apiVersion: descheduler/v1alpha1`"
