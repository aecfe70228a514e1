"""Marking rules are read with all their problems at once, each with its place and cure."""

from datetime import timedelta

import pytest

from rebalancer.errors import PolicyError
from rebalancer.marking.rules import Sign, Signs, load_marking_rules
from rebalancer.policy.load import load_policy
from rebalancer.run.policies import known_plugins

HEAD = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles: []\n"
PROMETHEUS = "metricsProviders: [{source: Prometheus, prometheus: {url: 'http://prometheus:9090'}}]\n"
RULE = "rules: {cpu: {query: up, above: 2, below: 1}}\n"


def load(text, policy=HEAD + PROMETHEUS):
    return load_marking_rules(
        text, load_policy(policy, known_plugins(), source="p", runs=False).policy, source="rules.yaml"
    )


def problems(text, policy=HEAD + PROMETHEUS):
    with pytest.raises(PolicyError) as raised:
        load(text, policy)
    return [(each.line, each.path, each.message) for each in raised.value.problems]


def test_what_is_absent_has_a_default():
    """Our own label, half of the nodes, a quarter of an hour, the value of the moment; a mark may have a value."""
    rules = load(RULE)

    assert rules.mark == Signs(label=Sign("kube-rebalancer/pressure"))
    given = load(RULE + "mark: {label: status=presure, taint: example.com/hot}").mark
    assert given == Signs(label=Sign("status", "presure"), taint=Sign("example.com/hot"))
    assert str(given.taint.on("cpu")) == "example.com/hot=cpu"
    assert (rules.max_nodes, rules.expiry) == (50, timedelta(minutes=15))
    assert rules.rules["cpu"].lasting == timedelta(0)


def test_all_problems_are_named_at_once():
    text = """kind: DeschedulerPolicy
rules:
  c p u: {query: up, above: 1, below: 1, for: 5s, abov: 3}
  memory: {query: up, above: 80%, below: 70}
  disk: {query: up, above: 1, below: 2}
maxNodes: 50
expiry: 0s
mark: {label: node.kubernetes.io/x=y, taint: a b}
foo: 1
"""
    found = {(line, path): message for line, path, message in problems(text)}

    assert "a rule's name is the value of a label" in found[3, 'rules["c p u"]']
    assert found[3, 'rules["c p u"].abov'] == "unknown key 'abov'; did you mean 'above'?"
    assert found[3, 'rules["c p u"].for'].startswith("for is at least 1m")
    assert "write 80, a percentage has no sign" in found[4, "rules.memory.above"]
    assert found[5, "rules.disk"] == "below (2) is more than above (1): values between do both"
    assert "write a whole percentage between 1% and 100%, like 50%" in found[6, "maxNodes"]
    assert found[7, "expiry"] == "expiry has to be between 5s and 24h"
    assert "belong to Kubernetes" in found[8, "mark.label"]
    assert "'a b' cannot be the key of a mark" in found[8, "mark.taint"]
    assert found[9, "foo"].startswith("unknown key 'foo'")
    assert found[1, "kind"].startswith("'DeschedulerPolicy' is not known here")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rules: {cpu: {above: 2, below: 1}}", "give either query (PromQL) or resource"),
        ("rules: {cpu: {query: up, resource: cpu, above: 2, below: 1}}", "give either query (PromQL) or resource"),
        ("rules: {cpu: {resource: cpu, for: 5m, above: 2, below: 1}}", "node and for go with query only"),
        ("rules: {cpu: {query: up, above: 2}}", "'below' is missing"),
        ("rules: {cpu: {query: up, above: 0, below: 0}}", "0 is out of range: more than 0"),
        ("rules: {}", "give at least one rule, like `cpu: {query: ..., above: 0.8, below: 0.7}`"),
        ("", "this is not a MarkingRules; a minimal one is `rules: {cpu:"),
        ("[]", "this is not a MarkingRules; a minimal one is `rules: {cpu:"),
        ("just words", "this is not a MarkingRules; a minimal one is `rules: {cpu:"),
    ],
)
def test_a_rule_says_one_thing(text, message):
    assert message in problems(text)[0][2]


def test_sources_have_to_be_in_the_policy():
    """A query needs Prometheus, a resource a strategy that measures it; both are named by line."""
    text = "rules:\n  a: {query: up, above: 2, below: 1}\n  b: {resource: cpu, above: 2, below: 1}"

    found = problems(text, HEAD)

    assert found[0][:2] == (2, "rules.a.query")
    assert "add `- source: Prometheus` with its url" in found[0][2]
    assert found[1] == (
        3,
        "rules.b.resource",
        "no strategy in the policy has metricsUtilization, which measures it; give a query instead",
    )


@pytest.mark.parametrize("key", ["kube-rebalancer/avoid", "kube-rebalancer/avoid-more", "example.com/steer"])
def test_steerings_keys_are_taken(key):
    policy = HEAD + PROMETHEUS + "steering: {key: example.com/steer}\n"

    assert problems(RULE + f"mark: {{taint: {key}}}", policy) == [
        (2, "mark.taint", f"{key} is a key of steering: give marks another one")
    ]


def test_rules_may_stand_in_a_config_map():
    text = "kind: ConfigMap\ndata:\n  rules.yaml: |\n    rules:\n      cpu: {query: up, above: 2, below: %s}\n"

    assert load(text % 1).rules["cpu"].above == 2
    assert problems(text % 3)[0][:2] == (5, "rules.cpu")
