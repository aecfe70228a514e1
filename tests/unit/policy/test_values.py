"""A policy without faults becomes values; one number (`appetite`) fills in what it leaves open."""

import pytest
import yaml
from click.testing import CliRunner

from rebalancer.cli.main import main
from rebalancer.cluster.selectors import LabelSelector, parse_selector_text
from rebalancer.policy.arguments import Args
from rebalancer.policy.v1alpha2 import policy_schema
from rebalancer.policy.values import LEVELS, LoadedPolicy, Policy, filled
from rebalancer.run.options import Options
from rebalancer.run.work import Work, work_maker
from tests.unit.policy.reading import HEAD, LIFE_TIME, NO_STRATEGY, PLUGINS, RUN_LIFE_TIME, load, profile


def args(plugin: str, **given: object) -> Args:
    """The arguments of a plugin, as a policy spells them."""
    return PLUGINS[plugin].args.model_validate(given)


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
      targetThresholds: {cpu: 50, example.com/gpu: 50}
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
    loaded = load(FULL, strict=True)
    policy = loaded.policy
    first, second = policy.profiles
    text = yaml.safe_load(FULL)
    found = policy.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"profiles", "node_selector"})

    assert loaded.warnings == ()
    assert policy.node_selector == parse_selector_text(text.pop("nodeSelector"))
    assert [each.name for each in policy.profiles] == [each["name"] for each in text.pop("profiles")]
    assert {key: found[key] for key in text} == text
    restarts = "RemovePodsHavingTooManyRestarts"
    assert (first.deschedule, first.balance) == ((restarts, "PodLifeTime", restarts), ("LowNodeUtilization",))
    assert (second.deschedule, second.balance) == ((), ("RemoveDuplicates",))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("text", [HEAD, "apiVersion: descheduler/v1alpha2"], ids=["with a kind", "without"])
def test_a_minimal_policy_is_legal_and_says_that_it_does_nothing(text, *, strict):
    """Nothing is set by default: no limit, no selector, no grace period."""
    loaded = load(text, strict=strict)

    assert loaded == LoadedPolicy(Policy(), (NO_STRATEGY,))
    limits = (loaded.policy.max_per_node, loaded.policy.max_per_namespace, loaded.policy.max_total)
    assert (*limits, loaded.policy.grace_period_seconds) == (None, None, None, None)
    assert loaded.policy.node_selector == LabelSelector()


@pytest.mark.parametrize("given", ["", ", args: null", ", args: {}", ", args: {namespaces: ~}"])
def test_absent_null_and_empty_arguments_are_the_same(given):
    loaded = load(profile(f"{{name: RemoveDuplicates{given}}}", "balance: {enabled: [RemoveDuplicates]}"))

    assert loaded.policy.profiles[0].args["RemoveDuplicates"] == args("RemoveDuplicates")
    assert loaded.warnings == ()


def test_null_is_absent_outside_arguments_too():
    text = HEAD + "nodeSelector:\nmaxNoOfPodsToEvictTotal:\nmetricsCollector:\nmetricsProviders:\nprofiles:\n"

    assert load(text) == load(HEAD)


def test_of_two_configurations_of_a_plugin_the_first_counts():
    text = profile(f"{LIFE_TIME}, {{name: PodLifeTime, args: {{maxPodLifeTimeSeconds: 7}}}}", RUN_LIFE_TIME)

    assert load(text).policy.profiles[0].args["PodLifeTime"] == args("PodLifeTime", maxPodLifeTimeSeconds=5)


def test_two_plugins_may_share_a_model():
    """The schema has it once, and a case for each of them."""
    shared = policy_schema({**PLUGINS, "Another": PLUGINS["RemoveDuplicates"]})

    assert len(shared["$defs"]["PluginConfig"]["allOf"]) == len(PLUGINS) + 1


LOW = "{name: LowNodeUtilization, args: {thresholds: {cpu: 20}, targetThresholds: {cpu: 50}}}"


def work(top: str) -> Work:
    text = profile(f"{LIFE_TIME}, {LOW}", f"{RUN_LIFE_TIME}, balance: {{enabled: [LowNodeUtilization]}}")
    return work_maker(Options(policy="given"))(load(text + top, strict=True))


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_fills_in_what_is_open(level: int) -> None:
    """Rest, lasting load, gain and limit; on level 1 nothing is evened out."""
    found = work(f"appetite: {level}\nsteering: {{}}")
    wanted = LEVELS[level]

    assert found.trust is not None
    assert found.trust.back_off.first == wanted.rest
    assert found.trust.lasting == wanted.lasting
    assert found.trust.move_price == wanted.price
    assert found.policy.steering is not None
    assert found.policy.steering.min_gain == wanted.min_gain
    assert found.policy.max_total == wanted.most
    assert [len(each.balance) for each in found.plans] == [int(wanted.balances)]


def test_what_the_policy_says_counts() -> None:
    trust = "trust: { lasting: { cycles: 1, of: 2 }, backOff: { first: 7m } }"
    found = work(f"appetite: 2\nmaxNoOfPodsToEvictTotal: 50\nsteering: {{ minGain: 3 }}\n{trust}")

    assert found.trust is not None
    assert found.trust.lasting is not None
    assert (found.trust.lasting.cycles, found.trust.back_off.first.total_seconds()) == (1, 420)
    assert found.policy.steering is not None
    assert (found.policy.steering.min_gain, found.policy.max_total) == (3, 50)


def test_without_it_nothing_is_filled_in() -> None:
    policy = work("trust: {}").policy

    assert filled(policy) is policy
    assert policy.trust is not None
    assert (LEVELS[3].rest, LEVELS[3].price) == (policy.trust.back_off.first, policy.trust.move_price)


def test_the_levels_are_shown() -> None:
    heading, *levels = CliRunner().invoke(main, ["appetite"]).stdout.splitlines()

    assert [each.split()[0] for each in levels] == list("12345")
    assert "minGain" in heading
