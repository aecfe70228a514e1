"""The permissions that the chart computes from a policy, and those of steering, are enough; each one is needed."""

import json
import os
from pathlib import Path

import pytest
import yaml

from rebalancer.kube.marks import ANNOTATION
from tests.chart.helm import ADMISSION, every, needed, one, template
from tests.e2e.access import HOME, NAME, Permission, account, permissions
from tests.e2e.acts import figures, set_old, set_restarts
from tests.e2e.api import Api, Object
from tests.e2e.binaries import found
from tests.e2e.builders import daemonset, deployment, node
from tests.e2e.program import Program, policy
from tests.e2e.proxy import Lose, Proxy
from tests.e2e.test_admission_policy import probed
from tests.e2e.test_steering_faults import PROBE, QUICK, Stage
from tests.e2e.waiting import wait_for

pytestmark = needed


def demanding():
    gold = {"PodsWithPVC": {"protectedStorageClasses": [{"name": "gold"}]}}
    evictor = {
        "namespaceLabelSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "Exists"}]},
        "priorityThreshold": {"name": "system-cluster-critical"},
        "podProtections": {"extraEnabled": ["PodsWithPVC"], "config": gold},
    }
    usage = {
        "thresholds": {"cpu": 50},
        "targetThresholds": {"cpu": 90},
        "metricsUtilization": {"source": "KubernetesMetrics"},
    }
    strategies: dict[str, Object] = {
        "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 100},
        "LowNodeUtilization": usage,
    }
    return policy(strategies, evictor, metricsProviders=[{"source": "KubernetesMetrics"}])


def old():
    restarts = {"podsHavingTooManyRestarts": {"podRestartThreshold": 100}}
    params = {**restarts, "thresholdPriorityClassName": "system-cluster-critical"}
    strategies = {"RemovePodsHavingTooManyRestarts": {"enabled": True, "params": params}}
    return {"apiVersion": "descheduler/v1alpha1", "kind": "DeschedulerPolicy", "strategies": strategies}


POLICIES = {
    "safe": yaml.safe_load(Path("policies/presets/safe.yaml").read_text()),
    "demanding": demanding(),
    "old": old(),
}


RENDERED = {
    name: template({"policy": {"text": json.dumps(each)}}) if found("helm") else [] for name, each in POLICIES.items()
}


#: For each policy, what the chart's rules allow: of the cluster role, and of the role for the Lease.
NEEDED = {
    name: [
        *permissions(one(rendered, "ClusterRole")["rules"]),
        *(each for role in every(rendered, "Role") for each in permissions(role["rules"])),
    ]
    for name, rendered in RENDERED.items()
    if rendered
}


@pytest.fixture
def crashing(metrics, namespace):
    """A namespace with three old pods, two of which crash on and on, and that have somewhere else to go."""
    namespace.create(node("a"), node("b"), daemonset("agent", usage="10m"), deployment("web", replicas=3))
    set_restarts(namespace, namespace.wait_ready(3, "web")[:2], restarts=150)
    set_old(namespace)
    return namespace


@pytest.mark.parametrize("name", POLICIES)
def test_computed_rules_suffice(metrics, crashing, name):
    """Nothing is forbidden and every permission is used, also to settle an eviction whose answers are lost."""
    wait_for(lambda: {"a", "b"} <= figures(metrics.api, "NodeMetrics").keys(), "figures of both nodes")

    with (
        account(metrics, crashing, RENDERED[name]) as kubeconfig,
        Proxy(metrics, Lose("POST", "/eviction")) as proxy,
    ):
        start = metrics.audit_offset()
        outcome = Program(proxy.kubeconfig(kubeconfig)).run(POLICIES[name])

    requests = metrics.requests_since(start, user=f"system:serviceaccount:{HOME}:{NAME}")
    assert outcome.exit_code == 0, outcome.stderr
    assert len(outcome.evicted()) == 2
    assert outcome.errors() == {}
    assert outcome.report["unknown"] == []
    assert not [request for request in requests if request.status in {401, 403}]
    assert {used(request) for request in requests} == set(NEEDED[name])
    reason = "RemovePodsHavingTooManyRestarts"
    events = [each for each in metrics.api.list("Event", crashing.name) if each["reason"] == reason]
    assert {event["involvedObject"]["name"] for event in events} == set(outcome.evicted())


def used(request):
    group = request.path.split("/")[2] if request.path.startswith("/apis/") else ""
    return Permission(request.verb, group, "/".join(filter(None, (request.resource, request.subresource))))


STEERING = template({"steering": {"enabled": True}}, *ADMISSION) if found("helm") else []


@pytest.fixture
def stage(controlplane, namespace, monkeypatch):
    """Pods on two nodes, one of which is to move to a third node; that one comes last, so that it has none of them."""
    monkeypatch.setenv("PYTHONPATH", f"{PROBE}{os.pathsep}{Path(__file__).parents[2]}")
    namespace.create(node("a"), node("b"), deployment("web", replicas=4))
    namespace.wait_ready(4)
    namespace.create(node("c"))
    return Stage(controlplane, namespace, Program(controlplane.kubeconfig))


def test_the_rules_of_steering_suffice(controlplane, stage):
    """Nodes are marked and unmarked by the account, and nothing that it asks for is forbidden."""
    with account(controlplane, stage.namespace, STEERING) as kubeconfig:
        wait_for(lambda: not probed(Api(kubeconfig), "a"), "the admission policy in force")
        offset = controlplane.audit_offset()

        outcome = Program(kubeconfig).run(stage.policy(waves=1), *QUICK)

    requests = controlplane.requests_since(offset, user=f"system:serviceaccount:{HOME}:{NAME}")
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.evicted(), outcome.report
    assert not [each for each in requests if each.status in {401, 403}]
    assert {"get", "patch"} <= {each.verb for each in requests if each.resource == "nodes"}
    assert stage.marked() == []
    assert not any(ANNOTATION in each["metadata"].get("annotations", {}) for each in controlplane.api.list("Node"))
