"""A policy without faults becomes values."""

import json

import pytest

from rebalancer.cluster.selectors import LabelSelector, parse_selector_text
from rebalancer.policy.values import LoadedPolicy, Policy
from tests.unit.policy.stand_ins import (
    HEAD,
    LIFE_TIME,
    NO_STRATEGY,
    RUN_LIFE_TIME,
    DuplicatesArgs,
    EvictorArgs,
    LifeTimeArgs,
    LowArgs,
    RestartsArgs,
    load,
    profile,
)

FULL = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
nodeSelector: pool in (a,b),!gpu
maxNoOfPodsToEvictPerNode: 10
maxNoOfPodsToEvictPerNamespace: 20.0
maxNoOfPodsToEvictTotal: 0
gracePeriodSeconds: 30
evictionFailureEventNotification: yes
metricsCollector: {enabled: false}
metricsProviders:
- source: Prometheus
  prometheus:
    url: https://prometheus.example:9090/base
    authToken: {secretReference: {namespace: monitoring, name: token}}
- source: KubernetesMetrics
profiles:
- name: twice
  pluginConfig:
  - name: DefaultEvictor
    args: {nodeFit: true, priorityThreshold: {value: 5}}
  - name: LowNodeUtilization
    args:
      thresholds: {cpu: 20.5, example.com/gpu: 10}
      targetThresholds: {cpu: 50}
  - name: PodLifeTime
    args: {apiVersion: whatever, states: [Pending, CrashLoopBackOff], labelSelector: {matchLabels: {a: b}}}
  - name: RemovePodsHavingTooManyRestarts
    args: {podRestartThreshold: 3}
  plugins:
    deschedule: {enabled: [RemovePodsHavingTooManyRestarts, PodLifeTime, RemovePodsHavingTooManyRestarts]}
    balance: {enabled: [LowNodeUtilization]}
    filter: {enabled: [DefaultEvictor]}
    preEvictionFilter: {enabled: [DefaultEvictor]}
- name: twice
  pluginConfig: [{name: RemoveDuplicates}]
  plugins: {balance: {enabled: [RemoveDuplicates]}, preevictionfilter: {enabled: [DefaultEvictor]}}
"""


def test_every_field_of_a_policy_arrives():
    """Limits, selector, profiles, arguments, orders and sources are those of the file."""
    loaded = load(FULL, strict=True)
    policy = loaded.policy

    assert loaded.warnings == ()
    assert policy.node_selector == parse_selector_text("pool in (a,b),!gpu")
    assert (policy.max_per_node, policy.max_per_namespace, policy.max_total) == (10, 20, 0)
    assert policy.grace_period_seconds == 30
    assert policy.eviction_failure_event_notification
    assert not policy.metrics_collector.enabled
    assert [profile.name for profile in policy.profiles] == ["twice", "twice"]


def test_sources_of_usage_arrive():
    """A provider keeps its source, its URL and the Secret of its token."""
    first, second = load(FULL).policy.metrics_providers

    assert (first.source, second.source) == ("Prometheus", "KubernetesMetrics")
    assert first.prometheus.url == "https://prometheus.example:9090/base"
    secret = first.prometheus.auth_token.secret_reference
    assert (secret.namespace, secret.name) == ("monitoring", "token")
    assert second.prometheus is None


def test_profiles_keep_the_order_of_their_lists_and_repetitions():
    """A strategy that is listed twice runs twice, where it is listed."""
    first, second = load(FULL).policy.profiles

    assert first.deschedule == (
        "RemovePodsHavingTooManyRestarts",
        "PodLifeTime",
        "RemovePodsHavingTooManyRestarts",
    )
    assert first.balance == ("LowNodeUtilization",)
    assert (second.deschedule, second.balance) == ((), ("RemoveDuplicates",))


def test_arguments_are_typed_and_defaulted():
    """Each configured plugin has arguments of its own model; DefaultEvictor has some in every profile."""
    first, second = load(FULL).policy.profiles

    assert dict(first.args) == {
        "DefaultEvictor": EvictorArgs.model_validate({"nodeFit": True, "priorityThreshold": {"value": 5}}),
        "LowNodeUtilization": LowArgs(thresholds={"cpu": 20.5, "example.com/gpu": 10}, target_thresholds={"cpu": 50}),
        "PodLifeTime": LifeTimeArgs.model_validate(
            {"states": ["Pending", "CrashLoopBackOff"], "labelSelector": {"matchLabels": {"a": "b"}}}
        ),
        "RemovePodsHavingTooManyRestarts": RestartsArgs(pod_restart_threshold=3),
    }
    assert dict(second.args) == {"DefaultEvictor": EvictorArgs(), "RemoveDuplicates": DuplicatesArgs()}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("text", [HEAD, "apiVersion: descheduler/v1alpha2"], ids=["with a kind", "without"])
def test_a_minimal_policy_is_legal_and_says_that_it_does_nothing(text, *, strict):
    """Nothing is set by default: no limit, no selector, no grace period."""
    loaded = load(text, strict=strict)

    assert loaded == LoadedPolicy(Policy(), (NO_STRATEGY,))
    limits = (loaded.policy.max_per_node, loaded.policy.max_per_namespace, loaded.policy.max_total)
    assert (*limits, loaded.policy.grace_period_seconds) == (None, None, None, None)
    assert loaded.policy.node_selector == LabelSelector()


@pytest.mark.parametrize("args", ["", ", args: null", ", args: {}", ", args: {namespaces: ~}"])
def test_absent_null_and_empty_arguments_are_the_same(args):
    """All of them are the plugin's defaults, and so is an argument that is null."""
    loaded = load(profile(f"{{name: RemoveDuplicates{args}}}", "balance: {enabled: [RemoveDuplicates]}"))

    assert loaded.policy.profiles[0].args["RemoveDuplicates"] == DuplicatesArgs()
    assert loaded.warnings == ()


def test_null_is_absent_outside_arguments_too():
    """A key without a value has its default."""
    text = HEAD + "nodeSelector:\nmaxNoOfPodsToEvictTotal:\nmetricsCollector:\nmetricsProviders:\nprofiles:\n"

    assert load(text) == load(HEAD)


def test_of_two_configurations_of_a_plugin_the_first_counts():
    """Both are checked, the first is used, and a warning says so."""
    text = profile(f"{LIFE_TIME}, {{name: PodLifeTime, args: {{maxPodLifeTimeSeconds: 7}}}}", RUN_LIFE_TIME)
    loaded = load(text)

    assert loaded.policy.profiles[0].args["PodLifeTime"] == LifeTimeArgs(max_pod_life_time_seconds=5)
    assert [str(each) for each in loaded.warnings] == [
        "line 5, profiles[0].pluginConfig[1]: PodLifeTime is configured twice in this profile; the first one counts"
    ]


def test_json_is_a_policy_too():
    """The same policy as JSON is the same policy."""
    args = {"name": "PodLifeTime", "args": {"maxPodLifeTimeSeconds": 5}}
    document = {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "profiles": [{"name": "p", "pluginConfig": [args], "plugins": {"deschedule": {"enabled": ["PodLifeTime"]}}}],
    }

    assert load(json.dumps(document)) == load(profile(LIFE_TIME, RUN_LIFE_TIME))


def test_a_policy_and_its_arguments_cannot_be_changed():
    """Values are frozen."""
    policy = load(FULL).policy

    with pytest.raises(ValueError, match="frozen"):
        policy.max_total = 1
    with pytest.raises(TypeError):
        policy.profiles[0].args["PodLifeTime"] = None
