"""The older form is converted: each enabled strategy becomes a profile of its own."""

from collections.abc import Mapping

import pytest

from rebalancer.policy.arguments import Args
from tests.unit.policy.stand_ins import OLD_HEAD, PLUGINS, EvictorArgs, load, problems

DEPRECATED = (
    "line 1, apiVersion: descheduler/v1alpha1 is deprecated; it is read as descheduler/v1alpha2, "
    "each strategy in a profile of its own"
)


def converted(name: str, params: str = "{}", top: str = "") -> Mapping[str, Args]:
    """The arguments of the one profile that a strategy with these params becomes."""
    text = f"{OLD_HEAD}{top}strategies: {{{name}: {{enabled: true, params: {params}}}}}"
    loaded = load(text, strict=True)
    (profile,) = loaded.policy.profiles
    assert [str(each) for each in loaded.warnings] == [DEPRECATED]
    return profile.args


@pytest.mark.parametrize(
    ("name", "params", "arguments"),
    [
        (
            "RemovePodsViolatingNodeTaints",
            (
                "{includePreferNoSchedule: true, excludedTaints: [a], includedTaints: [b], "
                "labelSelector: {matchLabels: {a: b}}}"
            ),
            {
                "includePreferNoSchedule": True,
                "excludedTaints": ["a"],
                "includedTaints": ["b"],
                "labelSelector": {"matchLabels": {"a": "b"}},
            },
        ),
        (
            "RemoveFailedPods",
            (
                "{namespaces: {exclude: [a]}, failedPods: {reasons: [r], excludeOwnerKinds: [Job], "
                "minPodLifetimeSeconds: 9, includingInitContainers: true}}"
            ),
            {
                "namespaces": {"exclude": ["a"]},
                "reasons": ["r"],
                "excludeOwnerKinds": ["Job"],
                "minPodLifetimeSeconds": 9,
                "includingInitContainers": True,
            },
        ),
        ("RemoveFailedPods", "{}", {"minPodLifetimeSeconds": 3600}),
        ("RemoveDuplicates", "{includeSoftConstraints: false, nodeAffinityType: ~}", {}),
        ("RemovePodsViolatingNodeAffinity", "{nodeAffinityType: [x]}", {"nodeAffinityType": ["x"]}),
        ("RemovePodsViolatingInterPodAntiAffinity", "{namespaces: {include: [a]}}", {"namespaces": {"include": ["a"]}}),
        (
            "RemovePodsHavingTooManyRestarts",
            "{podsHavingTooManyRestarts: {podRestartThreshold: 3, includingInitContainers: true}}",
            {"podRestartThreshold": 3, "includingInitContainers": True},
        ),
        (
            "PodLifeTime",
            "{podLifeTime: {maxPodLifeTimeSeconds: 5, podStatusPhases: [Running], states: [Pending]}}",
            {"maxPodLifeTimeSeconds": 5, "states": ["Running", "Pending"]},
        ),
        (
            "RemoveDuplicates",
            "{namespaces: {include: [a]}, removeDuplicates: {excludeOwnerKinds: [Job]}}",
            {"namespaces": {"include": ["a"]}, "excludeOwnerKinds": ["Job"]},
        ),
        (
            "RemovePodsViolatingTopologySpreadConstraint",
            "{}",
            {"constraints": ["DoNotSchedule"], "topologyBalanceNodeFit": True},
        ),
        (
            "RemovePodsViolatingTopologySpreadConstraint",
            "{includeSoftConstraints: true}",
            {"constraints": ["DoNotSchedule", "ScheduleAnyway"], "topologyBalanceNodeFit": True},
        ),
        (
            "HighNodeUtilization",
            (
                "{namespaces: {exclude: [a]}, "
                "nodeResourceUtilizationThresholds: {thresholds: {cpu: 20}, numberOfNodes: 2}}"
            ),
            {"evictableNamespaces": {"exclude": ["a"]}, "thresholds": {"cpu": 20}, "numberOfNodes": 2},
        ),
        (
            "LowNodeUtilization",
            (
                "{nodeResourceUtilizationThresholds: {thresholds: {cpu: 20}, targetThresholds: {cpu: 50}, "
                "useDeviationThresholds: true, numberOfNodes: 2}}"
            ),
            {
                "thresholds": {"cpu": 20},
                "targetThresholds": {"cpu": 50},
                "useDeviationThresholds": True,
                "numberOfNodes": 2,
            },
        ),
    ],
)
def test_params_become_arguments(name, params, arguments):
    """Each strategy takes its own params; the taints to include are carried over, which the descheduler forgot."""
    args = converted(name, params)

    assert args[name] == PLUGINS[name].args.model_validate(arguments)
    assert args["DefaultEvictor"] == EvictorArgs()


def test_switches_and_node_fit_become_the_evictors():
    """The switches at the top hold for every profile, nodeFit for its strategy's."""
    top = "evictLocalStoragePods: true\nignorePvcPods: true\nevictDaemonSetPods: false\n"

    assert converted("RemoveDuplicates", "{nodeFit: true}", top)["DefaultEvictor"] == EvictorArgs(
        evict_local_storage_pods=True, ignore_pvc_pods=True, node_fit=True
    )


@pytest.mark.parametrize(
    ("params", "threshold"),
    [
        ("{thresholdPriority: 0}", {"value": 0}),
        ("{thresholdPriorityClassName: high}", {"name": "high"}),
        ("{thresholdPriority: 7, thresholdPriorityClassName: ''}", {"value": 7}),
    ],
)
def test_a_priority_threshold_becomes_the_evictors(params, threshold):
    """By value or by name; a value of zero is one."""
    expected = EvictorArgs.model_validate({"priorityThreshold": threshold})

    assert converted("RemoveDuplicates", params)["DefaultEvictor"] == expected


def test_profiles_follow_the_document():
    """Enabled strategies keep their order, in profiles named for them, at their own extension points."""
    text = f"""\
{OLD_HEAD}nodeSelector: pool=a
maxNoOfPodsToEvictPerNode: 3
maxNoOfPodsToEvictPerNamespace: 4
strategies:
  RemovePodsViolatingTopologySpreadConstraint: {{enabled: true}}
  LowNodeUtilization: {{enabled: false, params: {{nodeResourceUtilizationThresholds: {{thresholds: bad}}}}}}
  RemoveFailedPods: {{enabled: true}}
  RemoveDuplicates: {{enabled: true}}
  PodLifeTime: {{}}
  HighNodeUtilization:
  DefaultEvictor: {{}}
"""
    policy = load(text).policy

    assert [(each.name, each.deschedule, each.balance) for each in policy.profiles] == [
        (
            "strategy-RemovePodsViolatingTopologySpreadConstraint-profile",
            (),
            ("RemovePodsViolatingTopologySpreadConstraint",),
        ),
        ("strategy-RemoveFailedPods-profile", ("RemoveFailedPods",), ()),
        ("strategy-RemoveDuplicates-profile", (), ("RemoveDuplicates",)),
    ]
    assert (policy.max_per_node, policy.max_per_namespace, policy.max_total) == (3, 4, None)
    assert policy.node_selector.matches({"pool": "a"})
    assert not policy.node_selector.matches({"pool": "b"})


def test_errors_are_placed_in_the_original_document():
    """Whatever converting moved, the author sees their own keys and lines."""
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
        - Runing
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
    assert found[4].endswith("'nodeAffinityType' is missing")
    assert found[6].endswith("no strategy of descheduler/v1alpha1 is called 'PodLifetime'; did you mean 'PodLifeTime'?")


@pytest.mark.parametrize(
    ("strategy", "warning"),
    [
        ("enabled: true, weight: 1", "weight: weight has no effect, and never had"),
        ("enabled: true, param: {}", "param: unknown key 'param' has no effect; did you mean 'params'?"),
        (
            "enabled: true, params: {labelSelectr: {}}",
            "params.labelSelectr: unknown key 'labelSelectr' has no effect; did you mean 'labelSelector'?",
        ),
        (
            "enabled: true, params: {states: [Running]}",
            "params.states: unknown key 'states' has no effect; it belongs under podLifeTime",
        ),
        (
            "enabled: true, params: {removeDuplicates: {excludeOwnerKind: [a]}}",
            "params.removeDuplicates.excludeOwnerKind: unknown key 'excludeOwnerKind' has no effect; did you mean",
        ),
        (
            "enabled: true, params: {labelSelector: {matchLabels: {a: b}}}",
            "params.labelSelector: RemoveDuplicates does not use labelSelector: it has no effect",
        ),
    ],
)
def test_what_has_no_effect_is_a_warning_and_strictly_an_error(strategy, warning):
    """Decoding was lenient; here the author is told."""
    text = OLD_HEAD + f"strategies:\n  RemoveDuplicates: {{{strategy}}}"
    expected = f"line 4, strategies.RemoveDuplicates.{warning}"

    assert str(load(text).warnings[1]).startswith(expected)
    (problem,) = problems(text, strict=True)
    assert problem.startswith(expected)


def test_node_fit_has_no_effect_on_pod_life_time():
    """The conversion never gave it to that strategy's evictor."""
    params = "{nodeFit: true, podLifeTime: {maxPodLifeTimeSeconds: 5}}"
    loaded = load(OLD_HEAD + f"strategies: {{PodLifeTime: {{enabled: true, params: {params}}}}}")

    assert loaded.policy.profiles[0].args["DefaultEvictor"] == EvictorArgs()
    assert "PodLifeTime does not use nodeFit" in loaded.warnings[1].message


def test_a_policy_of_strategies_without_a_version_is_told_the_older_one():
    """`strategies` gives the older form away."""
    (problem,) = problems("strategies: {RemoveDuplicates: {enabled: true}}")

    assert problem == "line 1: apiVersion is missing; begin with `apiVersion: descheduler/v1alpha1`"
