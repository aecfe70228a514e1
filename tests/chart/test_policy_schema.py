"""A mistake in `deschedulerPolicy` is found by helm, before anything is installed; what the program takes renders."""

import json
from typing import Any

import jsonschema
import pytest
import yaml

from rebalancer.errors import PolicyError
from rebalancer.policy.load import load_policy
from rebalancer.run.policies import known_plugins
from tests.chart.helm import Object, needed, template
from tests.chart.policy_schema import PATH, with_policy, written
from tests.conformance import corpus

SCHEMA: Object = json.loads(PATH.read_text())
#: What helm does with it, without helm.
VALIDATOR = jsonschema.Draft7Validator({name: SCHEMA[name] for name in ("definitions", "if", "then", "else")})

#: A little of everything that is a limit, a protection, a selector or a source.
POLICY = """
nodeSelector: pool=a
maxNoOfPodsToEvictPerNode: 10%
maxNoOfPodsToEvictPerNamespace: 5
maxNoOfPodsToEvictTotal: 20
gracePeriodSeconds: 30
windows: [{cron: "0 22 * * *", for: 6h, timezone: UTC}]
freeze: [{from: "2026-12-20", to: "2027-01-06"}]
metricsProviders: [{source: Prometheus, prometheus: {url: "http://prometheus:9090"}}]
profiles:
  - name: p
    pluginConfig:
      - name: DefaultEvictor
        args:
          minReplicas: 2
          minPodAge: 10m
          nodeFit: scheduler
          priorityThreshold: {value: 5}
          labelSelector: {matchExpressions: [{key: a, operator: Exists}]}
          podProtections: {extraEnabled: [PodsWithPVC], config: {PodsWithPVC: {protectedStorageClasses: [{name: a}]}}}
      - name: LowNodeUtilization
        args:
          thresholds: {cpu: 20}
          targetThresholds: {cpu: 50}
          evictionLimits: {node: 3}
          evictableNamespaces: {exclude: [kube-system]}
          metricsUtilization: {source: Prometheus, prometheus: {query: up}}
    plugins:
      balance: {enabled: [LowNodeUtilization], disabled: ["*"]}
      sort: {}
"""
#: Names that are the author's own.
FREE = {"cpu"}


def keys(value, path=()):
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found: list[tuple[object, ...]] = []
    for step, below in steps:
        found += [(*path, step)] * isinstance(value, dict)
        found += keys(below, (*path, step))
    return found


def misspelt(path):
    policy: Any = yaml.safe_load(POLICY)
    part = policy
    for step in path[:-1]:
        part = part[step]
    part[f"{path[-1]}s"] = part.pop(path[-1])
    return policy


def is_refused(policy):
    version = {"deschedulerPolicyAPIVersion": policy["apiVersion"]} if "apiVersion" in policy else {}
    return not VALIDATOR.is_valid({"deschedulerPolicy": policy, **version})


def test_it_is_the_programs_own():
    """`make schema` was run after the last change of an argument."""
    assert PATH.read_text() == written(with_policy(SCHEMA))


def test_every_misspelt_key_is_refused():
    """Wherever it stands; and the policy without a mistake is taken.  `name` is not required everywhere."""
    paths = [path for path in keys(yaml.safe_load(POLICY)) if path[-1] not in {*FREE, "name"}]

    assert [path for path in paths if not is_refused(misspelt(path))] == []
    assert not is_refused(yaml.safe_load(POLICY))


@pytest.mark.skipif(bool(corpus.missing()), reason=corpus.missing())
def test_what_the_program_takes_is_taken():
    """All recorded policies in which nothing is without effect, of either version."""
    recorded = [case.get("policy") or yaml.safe_load(case.get("policy_yaml") or "{}") for case in corpus.read()]
    taken = [policy for policy in recorded if policy and accepted(policy)]

    assert len(taken) > 400
    assert list(filter(is_refused, taken)) == []


def accepted(policy):
    try:
        load_policy(json.dumps(policy), known_plugins(), source="recorded", strict=True, runs=False)
    except PolicyError:
        return False
    return True


@needed
def test_nulls_templates_and_plugins_of_ones_own_render():
    """As they do in the descheduler's chart."""
    policy = {
        "nodeSelector": "team={{ .Release.Name }}",
        "maxNoOfPodsToEvictTotal": None,
        "profiles": [
            {
                "name": "{{ .Release.Name }}",
                "pluginConfig": [
                    {"name": "DefaultEvictor", "args": {"minPodAge": "{{ .Values.deschedulingInterval }}"}},
                    {"name": "OurOwn", "args": {"anything": 1}},
                    {"name": "RemoveDuplicates"},
                ],
                "plugins": {"deschedule": {"enabled": ["OurOwn"]}, "balance": None},
            }
        ],
    }

    assert template({"deschedulerPolicy": policy})
